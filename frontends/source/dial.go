package source

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The limits after which a connection without answers is closed, such as after a power
// failure or behind a firewall that restarts. Without them an idle watch waits for
// minutes, or for the ping of HTTP/2 for 45 s.
const (
	// dialTimeout is short because a new attempt sends a SYN at once, while a lost SYN is
	// repeated at intervals that double.
	dialTimeout = 3 * time.Second
	// An idle connection is probed after keepIdle, and then every keepInterval.
	keepIdle     = 5 * time.Second
	keepInterval = 2 * time.Second
	keepCount    = 3
	// unanswered is how long sent data may stay unacknowledged.
	unanswered = 10 * time.Second
)

// newDial returns the Dial of a KubeConfig that has none.
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
