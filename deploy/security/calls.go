package security

type call struct {
	name string
	// rare says when weft or the container's runtime makes the call. Without rare, the test must see
	// weft make the call.
	rare string
}

func always(names ...string) (out []call) {
	for _, n := range names {
		out = append(out, call{name: n})
	}
	return out
}

func rarely(when string, names ...string) (out []call) {
	for _, n := range names {
		out = append(out, call{n, when})
	}
	return out
}

// clone is allowed only for threads, and socket only for socketFamilies: see Seccomp.
func runtimeCalls() []call {
	return concat(
		always("clone", "close", "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "exit_group", "fcntl", "fstat", "futex", "getpid", "getrandom",
			"gettid", "mmap", "munmap", "nanosleep", "newfstatat", "openat", "prctl", "prlimit64", "read", "readlinkat", "rt_sigaction", "rt_sigprocmask",
			"rt_sigreturn", "sched_getaffinity", "sigaltstack", "uname", "write"),
		rarely("a goroutine that computes for long is preempted", "tgkill"),
		rarely("memory is given back", "madvise"),
		rarely("the first call of a static program on amd64", "arch_prctl"),
		rarely("the limit of open files; on arm64 and with a newer Go it is prlimit64", "getrlimit", "setrlimit"),
		rarely("a thread that finds no work", "sched_yield"),
		rarely("a thread that is locked to its goroutine ends", "exit"),
		rarely("a signal arrives while a call waits", "restart_syscall"),
		rarely("a clock that the vDSO cannot read", "clock_gettime"),
		rarely("the file system of the control group, for GOMAXPROCS", "statfs"),
		rarely("a profile of the CPU, with --profiling", "setitimer", "timer_create", "timer_settime", "timer_delete"),
		rarely("a directory is read", "getdents64"),
		rarely("the container runtime starts weft after the filter is installed", "execve", "mprotect", "rseq", "set_robust_list", "fstatfs", "openat2", "statx", "close_range"),
	)
}

func networkCalls() []call {
	return concat(
		always("accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom", "sendto", "setsockopt", "socket"),
		rarely("a connection is closed while its request arrives", "shutdown"),
		// For the creation and removal of a socket.
		always("flock", "fchmodat", "unlinkat"),
	)
}

func frontendCalls() []call {
	return concat(runtimeCalls(), networkCalls(), always("fchmod", "pread64"),
		rarely("the directory of the socket is missing", "mkdirat"),
		rarely("weft top and weft get ask for the size of the terminal", "ioctl"))
}

func kernelCalls() []call {
	return concat(runtimeCalls(), networkCalls(),
		// For netlink, and the identity of a socket's peer.
		always("recvmsg", "sendmsg", "ppoll", "getegid", "geteuid", "pidfd_send_signal"),
		rarely("before Linux 6.5 the socket does not say which process is at its other end", "pidfd_open"),
		// For the state directory.
		always("fallocate", "fdatasync", "fsync", "ftruncate", "pread64", "pwrite64", "renameat"),
		rarely("a directory is missing", "mkdirat"),
		rarely("the socket is given to its group; on arm64 it is fchownat", "lchown", "fchownat"),
		rarely("weft run --manifests watches the directory", "inotify_add_watch", "inotify_init1", "inotify_rm_watch"),
		// For terminals.
		always("ioctl"),
		rarely("weft run locks the directory of the frontends' sockets", "fchmod"))
}

// socketFamilies are the address families of weft's sockets. The files differ in their names.
func socketFamilies() map[string]uint64 {
	return map[string]uint64{"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
}

func concat(lists ...[]call) (out []call) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}
