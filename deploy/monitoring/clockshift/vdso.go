//go:build linux && amd64

package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	atNull   = 0
	atIgnore = 1
	// the address of the vDSO
	atVDSO = 33
)

// hideVDSO traces a thread, which begin wakes, until its exec, and then removes the vDSO's address.
func hideVDSO(thread, pid int, begin func() error) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(thread), 0, unix.PTRACE_O_TRACEEXEC, 0, 0); errno != 0 {
		return fmt.Errorf("trace: %w", errno)
	}
	if err := begin(); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("trace: %w", err)
		case got == pid && (status.Exited() || status.Signaled()):
			return fmt.Errorf("the program has not started: status %#x", int(status))
		case !status.Stopped():
			continue
		}
		if status.TrapCause() == unix.PTRACE_EVENT_EXEC {
			if err := removeVDSO(pid); err != nil {
				return err
			}
			return unix.PtraceDetach(pid)
		}
		// Deliver the signal.
		if err := unix.PtraceCont(got, int(status.StopSignal())); err != nil {
			return fmt.Errorf("trace: %w", err)
		}
	}
}

// removeVDSO reads the stack: argc, the arguments, 0, the environment, 0, and the auxiliary vector.
func removeVDSO(pid int) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &regs); err != nil {
		return fmt.Errorf("read registers: %w", err)
	}
	at := uintptr(regs.Rsp)
	word := func() (uint64, error) {
		b := make([]byte, 8)
		if _, err := unix.PtracePeekData(pid, at, b); err != nil {
			return 0, fmt.Errorf("read stack: %w", err)
		}
		at += 8
		return binary.LittleEndian.Uint64(b), nil
	}
	arguments, err := word()
	if err != nil {
		return err
	}
	at += uintptr(arguments+1) * 8
	for environment := uint64(1); environment != 0; {
		if environment, err = word(); err != nil {
			return err
		}
	}
	for {
		key, err := word()
		switch {
		case err != nil:
			return err
		case key == atNull:
			return errors.New("the program has no vDSO")
		case key == atVDSO:
			if _, err := unix.PtracePokeData(pid, at-8, binary.LittleEndian.AppendUint64(nil, atIgnore)); err != nil {
				return fmt.Errorf("write stack: %w", err)
			}
			return nil
		}
		at += 8
	}
}
