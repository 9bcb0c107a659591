package services

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// stack is the real thing in a network namespace: kernel, aggregator, socket.
type stack struct {
	ns       *nfttest.NS
	dir      string
	stateDir string
	socket   string
	log      *slog.Logger
	// registerer gets the aggregator's metrics; nil discards them.
	registerer prometheus.Registerer
	// configure changes the configuration of frontends; nil leaves it.
	configure func(*Config)
}

func newStack(t testing.TB, ns *nfttest.NS) *stack {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	dir := t.TempDir()
	return &stack{ns: ns, dir: dir, stateDir: filepath.Join(dir, "state"), socket: filepath.Join(dir, "weft.sock"),
		log: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))}
}

// testWriter is a log that is shown with the test's failure.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(b[:len(b)-1]))
	return len(b), nil
}

// aggregator runs an aggregator until stop is called, at the latest at the end
// of the test.
func (s *stack) aggregator(t testing.TB) (agg *aggregator.Aggregator, stop func()) {
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: s.ns.FD()})
	must(t, err)
	// Flows are removed by one, and listed by the other.
	var flows, table *conntrack.Conn
	for _, c := range []**conntrack.Conn{&flows, &table} {
		must(t, s.ns.Do(func() (err error) { *c, err = conntrack.Open(); return err }))
	}
	agg, err = aggregator.New(aggregator.Config{Kernel: conn, Flows: flows, StateDir: s.stateDir, Rate: rate.Inf, Registerer: s.registerer, Logger: s.log.With("part", "aggregator")})
	must(t, err)
	srv, err := server.Listen(server.Config{Socket: s.socket, Aggregator: agg, Flows: table, Logger: s.log})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := agg.Run(ctx); err != nil {
			t.Errorf("run aggregator: %v", err)
		}
		_, _, _ = conn.Close(), flows.Close(), table.Close()
	})
	wg.Go(func() {
		if err := srv.Serve(ctx); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return agg, stop
}

// frontend runs a frontend until stop is called, at the latest at the end of
// the test.
func (s *stack) frontend(t testing.TB, src source.Source, nodePorts ...netip.Prefix) (f *Frontend, stop func()) {
	t.Helper()
	cfg := Config{
		Source: src, NodeName: "node-1", Socket: s.socket, MinSyncPeriod: -1, NodePortAddresses: nodePorts,
		Detect: render.Detect{CIDRs: podCIDRs}, Logger: s.log.With("part", "frontend"),
	}
	if s.configure != nil {
		s.configure(&cfg)
	}
	f, err := New(cfg)
	must(t, err)
	return f, runUntil(t, f)
}

// runUntil runs a frontend until stop is called, at the latest at the end of the test.
func runUntil(t testing.TB, f *Frontend) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- runWithSource(ctx, f) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run frontend: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
