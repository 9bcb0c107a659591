package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/conformance/balancer"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// world is all processes besides the specs.
type world struct {
	*cluster.World
	proxy, logs string
	// one for each node
	proxies []*daemon
	// stopBalancer is nil before its start.
	stopBalancer func() error
}

// balancerRanges are benchmark and documentation prefixes for load balancer addresses that specs do not
// use.
func balancerRanges() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("198.18.0.0/24"), netip.MustParsePrefix("2001:db8::/64")}
}

// newWorld waits until everything is ready, and stops it with the test.
func newWorld(t *testing.T, ctx context.Context, proxy, name string) *world {
	t.Helper()
	w := &world{proxy: proxy, logs: filepath.Join(logDir, name)}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the logs are in %s", w.logs)
		}
	})
	if err := w.start(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) start(ctx context.Context) error {
	var err error
	w.World, err = cluster.StartWorld(ctx, cluster.WorldConfig{
		Lab: lab.Config{Nodes: nodes()}, Zones: []string{"zone-a", "zone-b", "zone-c"},
		ControlPlane: program("controlplane"), Node: program("node"), Dir: runDir, LogDir: w.logs,
	})
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{w.startProxies, w.startBalancer, w.Cluster.CreateDNS, w.ready} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) kubectl(ctx context.Context, args ...string) error {
	_, err := w.Kubectl(ctx, args...)
	return err
}

func (w *world) startBalancer(ctx context.Context) error {
	log, err := os.Create(filepath.Join(w.logs, "balancer.log"))
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	b, err := balancer.New(balancer.Config{
		Client: w.Cluster.Client(), Ranges: balancerRanges(), Route: w.route, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- errors.Join(b.Run(ctx), log.Close()) }()
	w.stopBalancer = func() error {
		cancel()
		return <-done
	}
	return nil
}

// route routes an address to nodes.
func (w *world) route(addr netip.Addr, names []string) error {
	var nodes []*lab.Node
	for _, n := range w.Lab.Nodes {
		for _, name := range names {
			if n.Name() == name {
				nodes = append(nodes, n)
			}
		}
	}
	return w.Lab.Balance(addr, nodes)
}

func (w *world) stop() error {
	var errs []error
	if w.stopBalancer != nil {
		errs = append(errs, w.stopBalancer())
	}
	for _, d := range w.proxies {
		errs = append(errs, d.unexpected(), d.stop())
	}
	if w.World != nil {
		errs = append(errs, w.World.Stop())
	}
	return errors.Join(errs...)
}
