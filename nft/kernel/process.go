package kernel

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processOf searches /proc/net/netlink and the file descriptors of all processes. It returns 0 if
// not found, for example in another PID namespace.
func processOf(netNS int, portID uint32) (pid int, name string) {
	table, err := netlinkTable(netNS)
	if err != nil {
		return 0, ""
	}
	inode := socketInode(bytes.NewReader(table), portID)
	if inode == "" {
		return 0, ""
	}
	want := "socket:[" + inode + "]"
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0, ""
	}
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err != nil || target != want {
			continue
		}
		dir := filepath.Dir(filepath.Dir(fd))
		if pid, err = strconv.Atoi(filepath.Base(dir)); err != nil {
			continue
		}
		comm, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			return pid, "unknown"
		}
		return pid, strings.TrimSpace(string(comm))
	}
	return 0, ""
}

// netlinkTable reads the calling thread's network namespace if netNS is 0.
func netlinkTable(netNS int) (table []byte, err error) {
	const path = "/proc/thread-self/net/netlink"
	if netNS == 0 {
		return os.ReadFile(path)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// never unlocked: the runtime ends the thread with the goroutine
		runtime.LockOSThread()
		if err = unix.Setns(netNS, unix.CLONE_NEWNET); err == nil {
			table, err = os.ReadFile(path)
		}
	}()
	<-done
	return table, err
}

// The columns are: sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode.
func socketInode(table io.Reader, portID uint32) string {
	protocol, port := strconv.Itoa(unix.NETLINK_NETFILTER), strconv.FormatUint(uint64(portID), 10)
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) >= 10 && f[1] == protocol && f[2] == port {
			return f[9]
		}
	}
	return ""
}
