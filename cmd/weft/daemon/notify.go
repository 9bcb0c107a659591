package daemon

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

const (
	// notifySocket is the variable in which systemd names the socket of a unit with Type=notify.
	notifySocket = "NOTIFY_SOCKET"
	// notifyPatience bounds the wait for the rules: while the API server is away a start does not fail.
	notifyPatience = 10 * time.Second
	// notifyInterval is the time between two looks at the conditions.
	notifyInterval = 20 * time.Millisecond
)

// notifyStarted reports to systemd that the daemon has started: when its own frontends have published, and at the latest after the
// patience. So `systemctl start` fails if the daemon cannot start, and otherwise returns when the rules are in force. Publishers of
// other units do not count, because these may wait for this one.
func notifyStarted(ctx context.Context, socket string, ready check, patience time.Duration) error {
	for end := time.Now().Add(patience); ready() != nil && time.Now().Before(end); {
		if !cli.Pause(ctx, notifyInterval) {
			return nil
		}
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("READY=1\n")); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
