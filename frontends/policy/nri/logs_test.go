package nri_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// logs keeps what is logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write implements io.Writer.
func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// await waits for a message.
func (l *logs) await(t *testing.T, message string) {
	t.Helper()
	aggregatortest.Eventually(t, "the message "+message, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return strings.Contains(l.text.String(), message)
	})
}

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wait waits until a channel is closed.
func wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		t.Errorf("waited in vain for %s", what)
	}
}
