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
	"github.com/weft-proxy/weft/aggregator/trusted"
)

// noKernel is for servers that are never served.
type noKernel struct{ aggregator.Kernel }

func (noKernel) Owner() bool { return false }

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

// TestLockThatOthersCanHold has a lock that other users can open, and so hold.
func TestLockThatOthersCanHold(t *testing.T) {
	a, err := aggregator.New(aggregator.Config{Kernel: noKernel{}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Socket: filepath.Join(t.TempDir(), "weft.sock"), Aggregator: a}
	file := cfg.Socket + lockSuffix
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604} {
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("lock: file %s has mode %04o: other users can change it, because they can lock it: chmod 600", file, mode)
		if _, err := Listen(cfg); !errors.Is(err, trusted.ErrUnsafe) || !strings.Contains(err.Error(), want) {
			t.Errorf("mode %v: error %v, want %s", mode, err, want)
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
