package server

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// connected reports whether the caller's end of the connection is open.
//
// A call's context does not tell: gRPC cancels calls in the order of the frames,
// so a stream that was reset is known to be gone before the next one of the same
// connection begins, but the end of the connection is seen only when all that was
// written before is read. The kernel closes a process's sockets before its
// parent can learn of its death, so a process that is started in its place connects
// after this has become false.
func (c caller) connected() bool {
	conn, ok := c.conn.(syscall.Conn)
	return !ok || !hungUp(conn)
}

// hungUp asks the kernel whether the other end of a connection is closed,
// whatever there is still to read. One that is closed on this side counts too.
func hungUp(c syscall.Conn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	var gone bool
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // a descriptor
		for {
			_, err := unix.Poll(p, 0)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
		gone = p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	})
	return gone || err != nil
}
