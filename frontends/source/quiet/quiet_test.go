package quiet

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestHandler passes each message once in a while, and none of requests that their
// own context ended.
func TestHandler(t *testing.T) {
	var log bytes.Buffer
	l := slog.New(New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		l.Error("failed to watch", "err", "refused")
		l.With("reflector", "a").Error("failed to watch", "err", "refused")
		l.WithGroup("g").Error("failed to watch", "err", "refused")
		l.Error("failed to watch", "err", context.Canceled)
		l.Error("failed to watch", "err", fmt.Errorf("list: %w", context.Canceled))
	}
	if n := strings.Count(log.String(), "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	s := &said{at: make(map[string]time.Time)}
	now := time.Now()
	if s.recently("a", now) || !s.recently("a", now.Add(quietFor/2)) || s.recently("a", now.Add(quietFor)) {
		t.Error("a message is not repeated after its time")
	}
	for i := range 3 * quietMost {
		s.recently(strings.Repeat("x", i), now)
	}
	if len(s.at) > quietMost {
		t.Errorf("%d messages are remembered", len(s.at))
	}
}
