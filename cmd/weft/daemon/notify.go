package daemon

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

const (
	// notifySocket is for a unit with Type=notify.
	notifySocket = "NOTIFY_SOCKET"
	// notifyPatience ends the wait for the API server: the start must not fail without it.
	notifyPatience = 10 * time.Second
	notifyInterval = 20 * time.Millisecond
)

// notifyStarted reports to systemd when the process's own frontends have published, or after
// patience. Publishers of other units may wait for this unit.
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
