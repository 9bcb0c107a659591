package suite

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
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Suite is a test binary.
type Suite struct {
	Name string
	Bin  string
	// Tools must be on the PATH; Packages contain them.
	Tools    []string
	Packages string
	// true if a user namespace is not enough
	Root     bool
	Programs []Program
}

// Program is built before the tests.
type Program struct {
	// Name is the file name in Suite.Bin.
	Name string
	// Note names a slow part of the build, or is empty.
	Note string
	// Dir is the module's directory, Package the package in the module.
	Dir, Package string
	Flags, Env   []string
	// Commit is the commit to build, or empty for the present files. Its files are in Suite.Source. The
	// module must span the whole repository.
	Commit string
}

// Kubernetes returns a program of the tested version of Kubernetes.
func Kubernetes(name, note, dir, pkg string) Program {
	return Program{Name: name, Note: note, Dir: dir, Package: pkg, Flags: stamp("v1.37.2")}
}

// EarlierKubernetes returns kube-apiserver and kube-proxy of an earlier minor version, 1.36 or 1.35, from
// the directory of package earlier. The program's name is the minor version.
func EarlierKubernetes(dir, minor string) Program {
	p := Program{Name: minor, Note: "(kube-apiserver and kube-proxy: minutes when the build cache is cold)", Dir: dir, Package: "."}
	switch minor {
	case "1.36":
		p.Flags = stamp("v1.36.3")
	case "1.35":
		p.Flags = append(stamp("v1.35.4"), "-modfile", "1.35.mod")
	default:
		panic("no module of Kubernetes " + minor)
	}
	return p
}

// stamp returns the flags that set a program's version.
func stamp(version string) []string {
	const variable = " -X k8s.io/component-base/version.git"
	minor := strings.Split(version, ".")[1]
	return []string{"-ldflags", "-s -w" + variable + "Version=" + version + variable + "Major=1" + variable + "Minor=" + minor}
}

// Weft returns weft, from the module's directory, built with the Makefile's flags to share the
// cache.
func Weft(dir string) Program {
	return Program{
		Name: weft, Dir: dir, Package: "./cmd/weft",
		Flags: []string{"-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w -X main.version=e2e"}, Env: []string{"CGO_ENABLED=0"},
	}
}

// Earlier returns the weft of another commit.
func Earlier(name, dir, commit string) Program {
	p := Weft(dir)
	p.Name, p.Commit, p.Note = name, commit, "of commit "+commit
	return p
}

const (
	weft   = "weft"
	inside = "WEFT_E2E_INSIDE"
	// override names a program in place of the built weft: another weft, or another proxy behind a
	// script with the same arguments.
	override = "WEFT_E2E_WEFT"
)

// Main runs the tests, and ends the process.
func (s *Suite) Main(m *testing.M) {
	flag.Parse()
	switch {
	case flag.Lookup("test.list").Value.String() != "":
		os.Exit(m.Run())
	case os.Getenv(inside) != s.Name:
		os.Exit(s.outer())
	}
	if err := enter(); err != nil {
		s.say(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Path returns the path of a program.
func (s *Suite) Path(name string) string {
	if other := os.Getenv(override); name == weft && other != "" {
		return other
	}
	return filepath.Join(s.Bin, name)
}

// Source is the directory with the files of a program's commit.
func (s *Suite) Source(name string) string { return filepath.Join(s.Bin, name+".source") }

func (s *Suite) say(what any) { fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, what) }

func (s *Suite) outer() int {
	for _, tool := range s.Tools {
		if _, err := exec.LookPath(tool); err != nil {
			return s.unable(fmt.Errorf("%w: install %s", err, s.Packages))
		}
	}
	if s.Root && os.Geteuid() != 0 {
		return s.unable(errors.New("it must run as root, and not of a user namespace"))
	}
	if err := s.build(); err != nil {
		s.say(err)
		return 1
	}
	// The death signal below comes when the thread that started the child ends.
	runtime.LockOSThread()
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"="+s.Name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// The end of the child, the first process of the PID namespace, ends all others in the
		// namespace.
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	// The child gets the terminal's signals too, and reports them.
	signal.Ignore(os.Interrupt)
	err := cmd.Start()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		return s.unable(fmt.Errorf("make namespaces: %w: run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)", err))
	}
	if err != nil {
		s.say(fmt.Errorf("start tests in namespaces: %w", err))
		return 1
	}
	err = cmd.Wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return max(1, exit.ExitCode())
	}
	if err != nil {
		s.say(fmt.Errorf("run tests in namespaces: %w", err))
		return 1
	}
	return 0
}

// unable skips all tests, or fails if a missing privilege would go unnoticed.
func (s *Suite) unable(err error) int {
	if os.Getenv("CI") == "true" {
		s.say(err)
		return 1
	}
	s.say(fmt.Errorf("SKIP: %w", err))
	return 0
}

func enter() error {
	for _, m := range []struct {
		kind, at string
		flags    uintptr
	}{{"", "/", unix.MS_REC | unix.MS_PRIVATE}, {"proc", "/proc", 0}, {"tmpfs", "/run", 0}} {
		if err := unix.Mount(m.kind, m.at, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return nil
}

// Up-to-date programs are not linked again.
func (s *Suite) build() error {
	out, err := filepath.Abs(s.Bin)
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	for _, b := range s.Programs {
		if b.Name == weft && os.Getenv(override) != "" {
			continue
		}
		start := time.Now()
		fmt.Printf("%s: building %s %s\n", s.Name, b.Name, b.Note)
		cmd := exec.Command("go", slices.Concat([]string{"build", "-o", filepath.Join(out, b.Name)}, b.Flags, []string{b.Package})...)
		cmd.Dir = b.Dir
		if b.Commit != "" {
			cmd.Dir = filepath.Join(out, filepath.Base(s.Source(b.Name)))
			if err := extract(b.Dir, b.Commit, cmd.Dir); err != nil {
				return fmt.Errorf("build %s: %w", b.Name, err)
			}
		}
		cmd.Env = append(os.Environ(), b.Env...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build %s: %w", b.Package, err)
		}
		fmt.Printf("%s: built %s in %s\n", s.Name, b.Name, time.Since(start).Round(100*time.Millisecond))
	}
	return nil
}
