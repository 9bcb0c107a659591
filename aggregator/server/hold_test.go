package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/kernel"
)

// TestLease: one process at a time has the lease, and without a holder nothing is an error.
func TestLease(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	log, socket := slog.New(slog.DiscardHandler), HoldSocket(filepath.Join(dir, "weft.sock"))
	if f, err := NewLease(socket, log).Inherit(); f != nil || err != nil {
		t.Fatalf("without a holder: %v, %v", f, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Hold(ctx, socket, log) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the holder ends with %v", err)
		}
	})
	first, second := NewLease(socket, log), NewLease(socket, log)
	for deadline := time.Now().Add(time.Minute); first.conn == nil; <-time.After(time.Millisecond) {
		if f, err := first.Inherit(); f != nil || err != nil || time.Now().After(deadline) {
			t.Fatalf("the first lease of an empty holder: %v, %v", f, err)
		}
	}
	if f, err := first.Inherit(); f != nil || err != nil {
		t.Errorf("the same lease again: %v, %v", f, err)
	}
	if _, err := second.Inherit(); !errors.Is(err, kernel.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a second lease: %v, want that process %d has it", err, os.Getpid())
	}
	if err := first.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err := second.Inherit(); f != nil || err != nil || second.conn == nil {
		t.Errorf("after the end of the first: %v, %v", f, err)
	}
	// Another holder does not take the socket of one that runs.
	if err := Hold(ctx, socket, log); !errors.Is(err, ErrInUse) {
		t.Errorf("a second holder: %v, want %v", err, ErrInUse)
	}
}
