package kernel

import (
	"errors"
	"os"

	raw "github.com/mdlayher/socket"
	"golang.org/x/sys/unix"
)

// ErrHeld means that another process uses the socket requested by Config.Inherit.
var ErrHeld = errors.New("another process uses the netlink socket that owns the tables")

var errOtherNetwork = errors.New("it is of another network namespace: give this weft a socket in a directory of its own (--socket)")

// File returns a copy of the socket; the tables stay owned until all copies are closed.
//
// Possible errors: ErrClosed, errors of the system calls.
func (c *Conn) File() (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var fd int
	var failed error
	err := c.sock.raw.Control(func(of uintptr) { fd, failed = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	if err := c.sock.failure("fcntl", err, failed); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "nftables"), nil
}

// Only the owning socket can change an owned table, so the connection continues with that socket.
func (c *Conn) inheritSocket() error {
	if c.inherit == nil || !c.owner {
		return nil
	}
	f, err := c.inherit()
	if err != nil || f == nil {
		return err
	}
	defer f.Close()
	conn, err := raw.FileConn(f, "netlink")
	if err != nil {
		return err
	}
	sock, err := newSocket(conn)
	if err != nil {
		return err
	}
	// the earlier process may have left answers
	sock.pending = true
	own, err := networkOf(c.sock.conn)
	of, failed := networkOf(conn)
	if err := errors.Join(err, failed); err != nil {
		return errors.Join(err, sock.close())
	}
	if own != of {
		return errors.Join(errOtherNetwork, sock.close())
	}
	err = c.sock.close()
	c.sock, c.inherit = sock, nil
	c.portID.Store(sock.portID)
	return err
}

// networkOf returns the network namespace's cookie (Linux 5.14).
func networkOf(conn *raw.Conn) (cookie uint64, err error) {
	c, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := c.Control(func(fd uintptr) {
		cookie, err = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	})
	return cookie, errors.Join(err, os.NewSyscallError("getsockopt", failed))
}
