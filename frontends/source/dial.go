package source

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How soon it is noticed that the other end is gone without a word, as after a
// power failure, or behind a firewall that restarts: an idle watch would wait
// for minutes, or for HTTP/2's ping for 45 s.
const (
	// dialTimeout is short: the next attempt begins anew, while a SYN that was
	// lost is repeated at intervals that double.
	dialTimeout = 3 * time.Second
	// An idle connection is probed after keepIdle, then every keepInterval.
	keepIdle     = 5 * time.Second
	keepInterval = 2 * time.Second
	keepCount    = 3
	// unanswered is how long what was sent may wait to be confirmed.
	unanswered = 10 * time.Second
)

// dial opens a connection, as net.Dialer's DialContext.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// newDial returns the dial for the API.
func newDial() dial {
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
