package security

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// threadFlag is a flag of clone only for a thread.
const threadFlag = unix.CLONE_THREAD

// Seccomp returns the filter of a kind for OCI runtimes. Other calls fail with EPERM; clone3 fails with
// ENOSYS, so that a C library falls back to clone.
func Seccomp(k Kind) specs.LinuxSeccomp {
	names, _ := k.Calls()
	plain := slices.DeleteFunc(names, func(n string) bool { return n == "clone" || n == "socket" })
	missing := uint(unix.ENOSYS)
	refused := uint(unix.EPERM)
	p := specs.LinuxSeccomp{
		DefaultAction: specs.ActErrno, DefaultErrnoRet: &refused,
		Architectures: []specs.Arch{specs.ArchX86_64, specs.ArchAARCH64},
		Syscalls: []specs.LinuxSyscall{
			{Names: plain, Action: specs.ActAllow},
			{Names: []string{"clone"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: 0, Value: threadFlag, ValueTwo: threadFlag, Op: specs.OpMaskedEqual}}},
			{Names: []string{"clone3"}, Action: specs.ActErrno, ErrnoRet: &missing},
		},
	}
	families := socketFamilies()
	for _, name := range []string{"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"} {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{
			Names: []string{"socket"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: 0, Value: families[name], Op: specs.OpEqualTo}},
		})
	}
	return p
}
