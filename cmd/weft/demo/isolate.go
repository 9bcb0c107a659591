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
	"syscall"

	"golang.org/x/sys/unix"
)

// isolated is set in the environment of the process inside the namespaces.
const isolated = "WEFT_DEMO_ISOLATED"

// isolate runs this program again in namespaces of its own and waits for it. When ctx ends it asks the program to stop; when this process
// dies the kernel kills it. It returns the program's exit as an error.
func isolate(ctx context.Context, stdout, stderr io.Writer) error {
	// The parent-death signal is sent when the thread ends that started the
	// program.
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
		// A terminal's interrupt reaches the outer process alone, which
		// passes it on.
		Setpgid: true,
	}
	if userns {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

// mountProc gives the new PID namespace a /proc of its own. A container may
// forbid it; all that the demo itself reads there (self, sys/net) is right in
// the old one as well.
func mountProc() {
	if unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") == nil {
		_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
}
