package security

// call is a system call that a container may make.
type call struct {
	name string
	// rare says when weft, or the container's runtime, makes the call; "" if the test must see it.
	rare string
}

// always returns calls that every run makes.
func always(names ...string) (out []call) {
	for _, n := range names {
		out = append(out, call{name: n})
	}
	return out
}

// rarely returns calls that a run may do without.
func rarely(when string, names ...string) (out []call) {
	for _, n := range names {
		out = append(out, call{n, when})
	}
	return out
}

// runtimeCalls are those of every Go program with files, timers and threads. Seccomp allows clone for
// threads alone, and socket for some families.
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

// networkCalls are those of clients and servers.
func networkCalls() []call {
	return concat(
		always("accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom", "sendto", "setsockopt", "socket"),
		rarely("a connection is closed while its request arrives", "shutdown"),
		rarely("weft top and weft get ask for the size of the terminal", "ioctl"),
	)
}

// frontendCalls are those of a container with API credentials.
func frontendCalls() []call {
	return concat(runtimeCalls(), networkCalls(), always("pread64"))
}

// serviceCalls are those of the Service frontend.
func serviceCalls() []call {
	return rarely("a connection to a NodePort on a loopback address", "pipe2", "splice")
}

// kernelCalls are those of a container that may program the kernel.
func kernelCalls() []call {
	return concat(runtimeCalls(), networkCalls(),
		// Netlink, and who is at the other end of the socket.
		always("recvmsg", "sendmsg", "ppoll", "getegid", "geteuid", "pidfd_send_signal"),
		rarely("before Linux 6.5 the socket does not say which process is at its other end", "pidfd_open"),
		// A socket is created with a mode, under a lock, and removed.
		always("flock", "fchmodat", "unlinkat"),
		// The state directory.
		always("fdatasync", "fsync", "ftruncate", "pread64", "pwrite64", "renameat"),
		rarely("a directory is missing", "mkdirat"),
		rarely("a durable fragment is stored", "fallocate"),
		rarely("the socket is given to its group; on arm64 it is fchownat", "lchown", "fchownat"),
		rarely("weft run --manifests watches the directory", "inotify_add_watch", "inotify_init1", "inotify_rm_watch"))
}

// socketFamilies are the address families of weft's sockets, by number: names differ
// from file to file.
func socketFamilies() map[string]uint64 {
	return map[string]uint64{"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
}

func concat(lists ...[]call) (out []call) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}
