package services

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// fakeAggregator keeps the elements that were published.
type fakeAggregator struct{ *publishtest.Aggregator }

func newFake(t *testing.T) *fakeAggregator {
	t.Helper()
	return &fakeAggregator{publishtest.New(t)}
}

// object names an element as violations do.
func object(family, set, key string) string {
	return publishtest.Element(family, render.Table, set, key)
}

// served returns the keys of the map services, sorted.
func (f *fakeAggregator) served() string {
	var out []string
	for k := range f.Elements() {
		if of := nametest.Parse(k); of.GetFamily() == "ip" && of.GetName() == "services" && strings.Contains(of.GetKey(), "tcp") {
			out = append(out, strings.TrimSuffix(of.GetKey(), " . tcp . 80"))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (f *fakeAggregator) count() int { return len(f.Updates()) }

// poisoned refuses every update with one of these endpoints, by name or not.
func poisoned(named bool, values ...string) func(map[string]string) []*weftv1.Violation {
	return func(elements map[string]string) []*weftv1.Violation {
		for _, k := range slices.Sorted(maps.Keys(elements)) {
			if !slices.Contains(values, elements[k]) {
				continue
			}
			v := &weftv1.Violation{Message: "operation not supported", Reason: weftv1.Violation_REASON_KERNEL}
			if named {
				v.Object = nametest.Parse(k)
			}
			return []*weftv1.Violation{v}
		}
		return nil
	}
}

var errStopped = errors.New("stopped by the test")

// run runs a frontend until the test ends; ended gives Run's error.
func run(t *testing.T, cfg Config) (f *Frontend, ended <-chan error) {
	t.Helper()
	return runAt(t, cfg, -1)
}

// runAt is run with a least time between two updates.
func runAt(t *testing.T, cfg Config, period time.Duration) (f *Frontend, ended <-chan error) {
	t.Helper()
	cfg.NodeName, cfg.MinSyncPeriod = "node-1", period
	f, err := New(cfg)
	must(t, err)
	return f, start(t, f)
}

// runWithSource runs a frontend and its source until one of them fails.
func runWithSource(ctx context.Context, f *Frontend) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.cfg.Source.Run(ctx) })
	g.Go(func() error { return f.Run(ctx) })
	return g.Wait()
}

// start runs a frontend until the test ends; the channel gives Run's error.
func start(t testing.TB, f *Frontend) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	done, out := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		out <- runWithSource(ctx, f)
	}()
	t.Cleanup(func() { cancel(errStopped); <-done })
	return out
}
