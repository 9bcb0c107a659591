package source

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits for silent connections. Otherwise an idle watch waits minutes, or 45 s for the HTTP/2 ping.
const (
	// dialTimeout is short, because a lost SYN is repeated at doubling intervals.
	dialTimeout  = 3 * time.Second
	keepIdle     = 5 * time.Second
	keepInterval = 2 * time.Second
	keepCount    = 3
	// unanswered bounds the time of unacknowledged data.
	unanswered = 10 * time.Second
)

func newDial() func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{
		Timeout:         dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepIdle, Interval: keepInterval, Count: keepCount},
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			set := func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
			}
			if cerr := c.Control(set); cerr != nil {
				return cerr
			}
			return err
		},
	}
	return d.DialContext
}
