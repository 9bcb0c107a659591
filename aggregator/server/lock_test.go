package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
)

// noKernel is for servers that are never served.
type noKernel struct{ aggregator.Kernel }

func TestAwaitTakesTheSocketOver(t *testing.T) {
	a, err := aggregator.New(aggregator.Config{Kernel: noKernel{}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Socket: filepath.Join(t.TempDir(), "weft.sock"), Aggregator: a}
	first, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(cfg); !errors.Is(err, ErrInUse) {
		t.Fatalf("listen on a socket in use: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := Await(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("await a socket in use: %v", err)
	}
	type result struct {
		s   *Server
		err error
	}
	second := make(chan result, 1)
	go func() {
		s, err := Await(t.Context(), cfg)
		second <- result{s, err}
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	r := <-second
	if r.err != nil {
		t.Fatal(r.err)
	}
	if _, err := os.Stat(cfg.Socket); err != nil {
		t.Fatalf("the second has no socket: %v", err)
	}
	if err := r.s.Close(); err != nil {
		t.Fatal(err)
	}
}
