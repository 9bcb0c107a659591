package localsocket

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// TestSocket starts on what a killed predecessor left, and not beside one that lives.
func TestSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "test.sock")
	register := func(grpc.ServiceRegistrar) {}
	start := func() (stop func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- Serve(ctx, path, register) }()
		deadline := time.Now().Add(10 * time.Second)
		for {
			if info, err := os.Stat(path); err == nil && info.Mode().Perm() == 0o660 {
				return func() {
					cancel()
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
			}
			if time.Now().After(deadline) {
				t.Fatal("no socket")
			}
		}
	}
	stop := start()
	if err := Serve(t.Context(), path, register); err == nil {
		t.Error("a second one serves on the same socket")
	}
	stop()
	leave(t, path)
	start()()
}
