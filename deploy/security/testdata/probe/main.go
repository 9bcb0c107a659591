// Command probe makes system calls that weft does not, and prints their errors.
package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	var attr [128]byte
	a := uintptr(unsafe.Pointer(&attr))
	for _, c := range []struct {
		name string
		call uintptr
		args [3]uintptr
	}{
		{"clone of a process", unix.SYS_CLONE, [3]uintptr{uintptr(unix.SIGCHLD)}},
		{"clone3", unix.SYS_CLONE3, [3]uintptr{}},
		{"unshare", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWUSER}},
		{"setns", unix.SYS_SETNS, [3]uintptr{}},
		{"socket of AF_PACKET", unix.SYS_SOCKET, [3]uintptr{unix.AF_PACKET, unix.SOCK_RAW}},
		{"socket of AF_ALG", unix.SYS_SOCKET, [3]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}},
		{"socket of AF_VSOCK", unix.SYS_SOCKET, [3]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}},
		{"ptrace", unix.SYS_PTRACE, [3]uintptr{}},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [3]uintptr{1}},
		{"bpf", unix.SYS_BPF, [3]uintptr{}},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [3]uintptr{a}},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [3]uintptr{1, a}},
		{"userfaultfd", unix.SYS_USERFAULTFD, [3]uintptr{}},
		{"keyctl", unix.SYS_KEYCTL, [3]uintptr{}},
		{"mount", unix.SYS_MOUNT, [3]uintptr{}},
		{"init_module", unix.SYS_INIT_MODULE, [3]uintptr{}},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [3]uintptr{}},
		{"memfd_create", unix.SYS_MEMFD_CREATE, [3]uintptr{a}},
	} {
		_, _, errno := unix.Syscall(c.call, c.args[0], c.args[1], c.args[2])
		fmt.Printf("%s: %d\n", c.name, int(errno))
	}
}
