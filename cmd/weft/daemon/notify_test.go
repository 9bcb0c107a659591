package daemon

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// TestNotifyStarted sends what sd_notify(3) says once the daemon is ready, and also if it does not become ready.
func TestNotifyStarted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	ready := func() error { return nil }
	if err := notifyStarted(t.Context(), path, ready, time.Hour); err == nil {
		t.Error("no error for a socket that does not exist")
	}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must(t, err)
	defer socket.Close()
	looks := 0
	later := func() error {
		if looks++; looks < 3 {
			return errors.New("not published yet")
		}
		return nil
	}
	for name, tt := range map[string]struct {
		ready    check
		patience time.Duration
	}{
		"ready": {ready, time.Hour}, "ready later": {later, time.Hour},
		"never ready": {func() error { return errors.New("the API server is away") }, time.Millisecond},
	} {
		if err := notifyStarted(t.Context(), path, tt.ready, tt.patience); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := make([]byte, 100)
		n, err := socket.Read(text)
		if err != nil || string(text[:n]) != "READY=1\n" {
			t.Errorf("%s: systemd got %q, %v", name, text[:n], err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := notifyStarted(ended, "/nowhere", func() error { return errors.New("not published yet") }, time.Hour); err != nil {
		t.Errorf("after the end of the daemon: %v", err)
	}
}
