package aggregatortest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
)

// Wait bounds every wait in tests.
const Wait = 3 * time.Minute

// Daemon is a running aggregator with its socket.
type Daemon struct {
	Aggregator *aggregator.Aggregator
	Socket     string

	cancel context.CancelFunc
	wg     sync.WaitGroup
	err    error
	once   sync.Once
}

// Config has a required Kernel.
type Config struct {
	aggregator.Config
	// empty: in a temporary directory
	Socket string
	// optional
	Limits func(*server.Config)
}

// Start runs an aggregator and its server until the test ends or Stop, and waits until it commits
// (unless on standby).
func Start(t testing.TB, cfg Config) *Daemon {
	t.Helper()
	if cfg.Socket == "" {
		cfg.Socket = Socket(t)
	}
	if cfg.Logger == nil && os.Getenv("WEFT_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	a, err := aggregator.New(cfg.Config)
	if err != nil {
		t.Fatal(err)
	}
	// A raw connection answers no ping.
	sc := server.Config{Socket: cfg.Socket, Aggregator: a, Access: cfg.Access, Logger: cfg.Logger, KeepaliveTimeout: time.Hour}
	if cfg.Limits != nil {
		cfg.Limits(&sc)
	}
	s, err := server.Listen(sc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &Daemon{Aggregator: a, Socket: cfg.Socket, cancel: cancel}
	d.wg.Go(func() { d.err = a.Run(ctx) })
	d.wg.Go(func() { _ = s.Serve(ctx) })
	t.Cleanup(func() { _ = d.Stop() })
	if !cfg.Standby {
		select {
		case <-a.Ready():
		case <-a.Stopped():
			t.Fatalf("aggregator ended: %v", d.Stop())
		case <-time.After(Wait):
			t.Fatal("aggregator is not ready")
		}
	}
	return d
}

// Socket returns a path short enough for a socket.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "weft.sock")
}

// Stop ends the daemon and returns the result of Run.
func (d *Daemon) Stop() error {
	d.once.Do(func() {
		d.cancel()
		d.wg.Wait()
	})
	return d.err
}

// Dial connects as a publisher until the test ends.
func (d *Daemon) Dial(t testing.TB, publisher string) *client.Client {
	t.Helper()
	c, err := client.Dial(Context(t), client.Config{Socket: d.Socket, Publisher: publisher})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Context returns a context that ends with the test, or after Wait.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	t.Cleanup(cancel)
	return ctx
}

// Eventually polls a condition until it holds.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(Wait)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still not so after %v: %s", Wait, what)
		}
	}
}
