package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
)

// TestRival reports a second server that is refused, for a while, and none that stands by.
func TestRival(t *testing.T) {
	a, err := aggregator.New(aggregator.Config{Kernel: noKernel{}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Socket: filepath.Join(t.TempDir(), "weft.sock"), Aggregator: a}
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	now := time.Now()
	s.rival.now = func() time.Time { return now }
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := Await(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("await a socket in use: %v", err)
	}
	if err := s.Rival(); err != nil {
		t.Errorf("one that stands by is a rival: %v", err)
	}
	for range 2 {
		if _, err := Listen(cfg); !errors.Is(err, ErrInUse) {
			t.Fatalf("listen on a socket in use: %v", err)
		}
		if err := s.Rival(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("(process %d) wanted the socket %s ", os.Getpid(), cfg.Socket)) {
			t.Errorf("of a rival: %v", err)
		}
		now = now.Add(rivalRecent)
		if err := s.Rival(); err != nil {
			t.Errorf("after a while: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// What the last server was told does not count for the next.
	next, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(next.Rival(), next.Close()); err != nil {
		t.Error(err)
	}
}
