//go:build linux && amd64

package main

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

const inProgram = "CLOCKSHIFT_PROGRAM"

func main() {
	// Tracing and the death signal belong to a thread.
	runtime.LockOSThread()
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: clockshift FILE PROGRAM [ARGUMENT...]")
		os.Exit(2)
	}
	var code int
	var err error
	if os.Getenv(inProgram) != "" {
		err = become(os.Args[2:])
	} else {
		code, err = supervise(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clockshift:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// channel is the descriptor of the socket to the parent in become.
const channel = 3

func become(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	listener, err := filterClock()
	if err != nil {
		return err
	}
	// Until the exec only this thread has the filter. The parent traces it meanwhile.
	if err := unix.Sendmsg(channel, fmt.Appendf(nil, "%d", unix.Gettid()), unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("send listener: %w", err)
	}
	if _, err := unix.Read(channel, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the parent: %w", err)
	}
	unix.CloseOnExec(channel)
	if err := os.Unsetenv(inProgram); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", path, syscall.Exec(path, argv, os.Environ()))
}

func supervise(file string) (code int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("make socket: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "channel")
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:noctx // it ends with this process
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdin, os.Stdout, os.Stderr, []*os.File{theirs}
	cmd.Env = append(os.Environ(), inProgram+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = theirs.Close()
	listener, thread, err := receive(pair[0])
	if err != nil {
		return 0, errors.Join(err, cmd.Process.Kill())
	}
	go answer(listener, file)
	if err := hideVDSO(thread, cmd.Process.Pid, func() error {
		_, err := unix.Write(pair[0], []byte{1})
		return err
	}); err != nil {
		return 0, errors.Join(err, cmd.Process.Kill())
	}
	state, err := cmd.Process.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait: %w", err)
	}
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal()), nil
	}
	return state.ExitCode(), nil
}

func receive(socket int) (listener, thread int, err error) {
	text, rights := make([]byte, 16), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := unix.Recvmsg(socket, text, rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, 0, fmt.Errorf("receive listener: %w", err)
	}
	if _, err := fmt.Sscan(string(text[:n]), &thread); err != nil {
		return 0, 0, fmt.Errorf("receive listener: the program has not started: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || len(messages) != 1 {
		return 0, 0, fmt.Errorf("receive listener: %d messages: %w", len(messages), err)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1 {
		return 0, 0, fmt.Errorf("receive listener: %d files: %w", len(files), err)
	}
	return files[0], thread, nil
}
