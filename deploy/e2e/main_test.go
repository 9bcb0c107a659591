package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inside is set in the second of the two processes: the one in the namespaces.
const inside = "WEFT_E2E_INSIDE"

func TestMain(m *testing.M) {
	flag.Parse()
	switch {
	case flag.Lookup("test.list").Value.String() != "":
		os.Exit(m.Run())
	case os.Getenv(inside) == "":
		os.Exit(outer())
	}
	if err := enter(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// outer builds what the tests run, where there is a network to fetch modules
// from, and then runs this program again in namespaces of its own.
func outer() int {
	for _, tool := range []string{"nft", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil {
			return unable(fmt.Errorf("%w: install nftables and util-linux", err))
		}
	}
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	// The death signal below comes when the thread that started the child ends.
	runtime.LockOSThread()
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// Whatever happens to this process, the kernel ends everything in the
		// PID namespace with its first process, which is the child.
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	// The child gets the terminal's signals too, and says what it has to say.
	signal.Ignore(os.Interrupt)
	err := cmd.Start()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		return unable(fmt.Errorf("make namespaces: %w: run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)", err))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: start tests in namespaces:", err)
		return 1
	}
	err = cmd.Wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return max(1, exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: run tests in namespaces:", err)
		return 1
	}
	return 0
}

// unable skips everything, but not where a missing privilege would go unnoticed.
func unable(err error) int {
	if os.Getenv("CI") == "true" {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "e2e: SKIP:", err)
	return 0
}

// enter makes the second process at home in its namespaces: a /proc of its own
// PIDs and a /run that nobody else sees.
func enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	return nil
}

// override names a weft to test in place of one that is built: a released one,
// or another proxy behind a script that takes the same arguments.
const override = "WEFT_E2E_WEFT"

// binary is the path of controlplane or weft.
func binary(name string) string {
	if other := os.Getenv(override); name == "weft" && other != "" {
		return other
	}
	return filepath.Join("bin", name)
}

// build brings both programs up to date. Nothing is linked again that is.
func build() error {
	const stamp = "-s -w" +
		" -X k8s.io/component-base/version.gitVersion=v1.36.3" +
		" -X k8s.io/component-base/version.gitMajor=1" +
		" -X k8s.io/component-base/version.gitMinor=36"
	out, err := filepath.Abs("bin")
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	for _, b := range []struct {
		what, dir, pkg, name string
		flags, env           []string
	}{
		{
			what: "kube-apiserver and etcd (minutes when the build cache is cold)",
			dir:  ".", pkg: "./cmd/controlplane", name: "controlplane", flags: []string{"-ldflags", stamp},
		},
		{
			// As the Makefile builds it, so that the cache serves both.
			what: "weft", dir: "../..", pkg: "./cmd/weft", name: "weft",
			flags: []string{"-trimpath", "-ldflags", "-s -w -X main.version=e2e"}, env: []string{"CGO_ENABLED=0"},
		},
	} {
		if b.name == "weft" && os.Getenv(override) != "" {
			continue
		}
		start := time.Now()
		fmt.Printf("e2e: building %s\n", b.what)
		cmd := exec.Command("go", slices.Concat([]string{"build", "-o", filepath.Join(out, b.name)}, b.flags, []string{b.pkg})...)
		cmd.Dir = b.dir
		cmd.Env = append(os.Environ(), b.env...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build %s: %w", b.pkg, err)
		}
		fmt.Printf("e2e: built %s in %s\n", b.name, time.Since(start).Round(100*time.Millisecond))
	}
	return nil
}
