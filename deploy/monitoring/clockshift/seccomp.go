//go:build linux && amd64

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of linux/seccomp.h and linux/audit.h that golang.org/x/sys/unix lacks.
const (
	setModeFilter     = 1
	newListener       = 1 << 3
	waitKillable      = 1 << 5
	notifReceive      = 0xc0502100
	notifSend         = 0xc0182101
	auditArchX8664    = 0xc000003e
	offsetNumber      = 0
	offsetArch        = 4
	offsetArgument    = 16
	errnoNoSuchThread = unix.ESRCH
)

// notification is a struct seccomp_notif.
type notification struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	arguments  [6]uint64
}

// response is a struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// filterClock hands clock_gettime(CLOCK_REALTIME) of this thread and its later program to the listener.
func filterClock() (listener int, err error) {
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	filter := []unix.SockFilter{
		load(offsetArch), unless(auditArchX8664, 5),
		load(offsetNumber), unless(unix.SYS_CLOCK_GETTIME, 3),
		load(offsetArgument), unless(unix.CLOCK_REALTIME, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		allow,
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("filter system calls: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]} //nolint:gosec // it is short
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, newListener|waitKillable, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, fmt.Errorf("filter system calls: %w", errno)
	}
	return int(fd), nil
}

// answer answers the program's questions for the time until it has ended. file has the difference.
func answer(listener int, file string) {
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifReceive, uintptr(unsafe.Pointer(&n)))
		switch {
		case errno == unix.EINTR || errno == unix.ENOENT:
			// The asking thread has ended.
			continue
		case errno != 0:
			return
		}
		r := response{id: n.id}
		if err := writeTime(int(n.pid), uintptr(n.arguments[1]), time.Now().Add(difference(file))); err != nil {
			r.errno = -int32(errnoOf(err)) //nolint:gosec // an errno
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), notifSend, uintptr(unsafe.Pointer(&r)))
	}
}

// difference reads the file, which is replaced atomically. A missing file means 0.
func difference(file string) time.Duration {
	text, err := os.ReadFile(file) //nolint:gosec // the file that the user names
	if err != nil {
		return 0
	}
	d, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "clockshift:", err)
	}
	return d
}

func writeTime(pid int, at uintptr, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	local := unix.Iovec{Base: (*byte)(unsafe.Pointer(&ts))}
	local.SetLen(int(unsafe.Sizeof(ts)))
	_, err = unix.ProcessVMWritev(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: at, Len: int(unsafe.Sizeof(ts))}}, 0)
	return err
}

func errnoOf(err error) unix.Errno {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return errnoNoSuchThread
}
