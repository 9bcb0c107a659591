package lab

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dial fits rest.Config.Dial and http.Transport.DialContext. The address must be numeric.
func (n *Namespace) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Control: n.control}).DialContext(ctx, network, address)
}

// control replaces a socket before it connects. Only the creation of a socket must be in the namespace,
// so waiting callers hold no thread.
func (n *Namespace) control(_, _ string, c syscall.RawConn) error {
	var err error
	if ctl := c.Control(func(fd uintptr) {
		err = n.Do(func() error { return replace(int(fd)) })
	}); ctl != nil {
		return ctl
	}
	return err
}

func replace(fd int) error {
	var kind [3]int
	for i, option := range []int{unix.SO_DOMAIN, unix.SO_TYPE, unix.SO_PROTOCOL} {
		var err error
		if kind[i], err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); err != nil {
			return fmt.Errorf("look at socket: %w", err)
		}
	}
	s, err := unix.Socket(kind[0], kind[1]|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, kind[2])
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	defer unix.Close(s)
	if err := unix.Dup3(s, fd, unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("put socket in place: %w", err)
	}
	return nil
}
