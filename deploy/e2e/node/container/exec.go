package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exec runs a process in a container and returns its exit status. The namespaces must include the
// container's PID and mount namespaces. SIGTERM to this process kills the other's process group. If
// this process is killed, the other continues until the container ends.
func Exec() (int, error) {
	runtime.LockOSThread()
	unix.CloseOnExec(errorFD)
	var c Command
	if err := read(&c); err != nil {
		return 0, err
	}
	// A thread that shares its root may not enter a mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return 0, fmt.Errorf("separate root directory: %w", err)
	}
	if err := enter(c.Namespaces); err != nil {
		return 0, err
	}
	program, err := c.lookPath()
	if err != nil {
		return 0, err
	}
	cmd := &exec.Cmd{
		Path: program, Args: c.Args, Env: c.Env, Dir: c.Dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if c.Terminal {
		// A new session is also a process group.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	if c.UID != 0 || c.GID != 0 || len(c.Groups) > 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(c.UID), Gid: uint32(c.GID), Groups: groups(c.Groups)}
	}
	if err := c.restrict(); err != nil {
		return 0, err
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		<-asked
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	}()
	unix.Close(errorFD)
	err = cmd.Wait()
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	case exit.ProcessState != nil:
		return 128 + int(exit.Sys().(syscall.WaitStatus).Signal()), nil
	default:
		return 0, err
	}
}

func groups(all []int) []uint32 {
	var list []uint32
	for _, g := range all {
		list = append(list, uint32(g))
	}
	return list
}
