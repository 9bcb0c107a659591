package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

const (
	// patience is how many seconds lines of a fault may take.
	patience = "60"
	// inNamespace is set in the process that is in namespaces of its own.
	inNamespace = "WEFT_FAULTS_NODE"
)

// isolate builds weft, and runs a test again in namespaces of its own: all processes and
// namespaces that it makes end with it.
func isolate(t *testing.T, test string, flags ...string) {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT, nfttest.Users)
	skip := t.Skipf
	if os.Getenv("CI") == "true" {
		skip = t.Fatalf
	}
	for _, tool := range []string{"bash", "conntrack", "curl", "ip", "iptables-nft", "python3", "setpriv", "sysctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			skip("no %s: %v", tool, err)
		}
	}
	if os.Getuid() != 0 {
		skip("other users and mounts need root")
	}
	dir := directory(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "weft"), "github.com/weft-proxy/weft/cmd/weft")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(flags, "-test.run=^"+test+"$", "-test.v", "-test.count=1")...)
	cmd.Env = append(os.Environ(), inNamespace+"="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// directory makes the directory of the node, which other users may enter.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-faults-") //nolint:usetesting // other users cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	return dir
}

// node is the node with weft, or the cluster.
type node struct {
	dir, functions string
}

// prepare makes what is in the namespaces of isolate, with the function healthy of a file.
func prepare(t *testing.T, file string) *node {
	t.Helper()
	functions, err := os.ReadFile(file) //nolint:gosec // of this package
	if err != nil {
		t.Fatal(err)
	}
	n := &node{dir: os.Getenv(inNamespace), functions: string(functions)}
	if err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""),
		syscall.Mount("sysfs", "/sys", "sysfs", 0, ""),
		syscall.Mount("run", "/run", "tmpfs", 0, ""),
		n.bash("healthy"),
	); err != nil {
		t.Fatal(err)
	}
	return n
}

// path returns a path below the node's directory.
func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

// bash runs lines with the functions of node.sh.
func (n *node) bash(lines string) error {
	cmd := exec.Command("timeout", patience, "bash", "-e", "-o", "pipefail", "-c", n.functions+"\n"+lines) //nolint:gosec,noctx // lines of this package
	cmd.Env = append(os.Environ(), "W="+n.dir)
	// A file and not a pipe: daemons that the lines start must not keep it open.
	out, err := os.CreateTemp(n.dir, "out")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(out.Close(), os.Remove(out.Name())) }()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", lines, err, text)
	}
	return nil
}
