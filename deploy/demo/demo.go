package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var errFailed = errors.New("demo failed")

const limit = 2 * time.Minute

// Run runs the demo and prints a line for each step; if verbose, also the expectations and the ruleset.
// It starts this program again in new namespaces with the same arguments, which must lead to Run.
//
// Possible errors: a step fails, or the cluster cannot be made.
func Run(ctx context.Context, stdout, stderr io.Writer, verbose bool) error {
	if os.Getenv(isolated) == "" {
		err := isolate(ctx, stdout, stderr)
		if errors.As(err, new(*exec.ExitError)) {
			// The other process has printed the reason.
			return errFailed
		}
		return err
	}
	mountProc()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d, err := newDemo(stdout)
	if err != nil {
		return errors.Join(err, d.close())
	}
	d.verbose = verbose
	return errors.Join(d.run(ctx, steps), d.close())
}

type demo struct {
	out     io.Writer
	verbose bool
	// sockets, manifests, state and logs
	dir       string
	manifests manifests
	cluster   *cluster
	// the agent with the deny list
	policy *agent
	// the path of nft(8), or empty
	nft    string
	stream *tcpStream
	// of node-1 before weft is killed
	before ruleset
}

// The caller must close the demo, even after an error.
func newDemo(out io.Writer) (*demo, error) {
	d := &demo{out: out}
	d.nft, _ = exec.LookPath("nft")
	var err error
	if d.dir, err = os.MkdirTemp("", "weft-demo-"); err != nil {
		return d, fmt.Errorf("make directory: %w", err)
	}
	if err := os.CopyFS(d.dir, embedded); err != nil {
		return d, fmt.Errorf("write manifests: %w", err)
	}
	d.manifests.dir = d.dir
	d.cluster, err = newCluster()
	return d, err
}

func (d *demo) logs(text string) string {
	var out strings.Builder
	add := func(p *process) {
		if tail := p.tail(); !strings.Contains(text, tail) {
			out.WriteString(tail)
		}
	}
	if d.policy != nil {
		add(d.policy.process)
	}
	for _, n := range d.cluster.nodes {
		if n.weft != nil {
			add(n.weft.process)
		}
	}
	return out.String()
}

func (d *demo) close() error {
	if d.stream != nil {
		d.stream.stop()
	}
	if d.policy != nil {
		d.policy.stop()
	}
	var err error
	if d.cluster != nil {
		for _, n := range d.cluster.nodes {
			if n.weft != nil {
				n.weft.stop()
			}
		}
		err = d.cluster.close()
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

const isolated = "WEFT_DEMO_ISOLATED"

// isolate asks the program to stop if ctx ends; if this process dies, the kernel kills the program.
func isolate(ctx context.Context, stdout, stderr io.Writer) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for userns := os.Geteuid() != 0; ; userns = true {
		cmd := isolatedCommand(ctx, userns)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		err := cmd.Start()
		switch {
		case err == nil:
			return cmd.Wait()
		case errors.Is(err, fs.ErrPermission) && !userns:
			// Root without CAP_SYS_ADMIN, as in most containers.
		default:
			return fmt.Errorf("start in private namespaces (user namespace: %t): %w: run as root, or allow user namespaces "+
				"(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)",
				userns, err)
		}
	}
}

func isolatedCommand(ctx context.Context, userns bool) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), isolated+"=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
		// A terminal's interrupt reaches only the outer process, which passes it on.
		Setpgid: true,
	}
	if userns {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

// A container may forbid mountProc; the old /proc suffices for the demo (self, sys/net).
func mountProc() {
	if unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") == nil {
		_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
}
