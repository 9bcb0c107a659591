package flows

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/conntrack"
)

// stuckFlows blocks in Flush until it is released.
type stuckFlows struct {
	entered, release chan struct{}
	mu               sync.Mutex
	flushed          []int
	err              error
}

func (f *stuckFlows) Flush(ctx context.Context, stale []conntrack.Change) (int, error) {
	select {
	case f.entered <- struct{}{}:
	case <-ctx.Done():
	}
	select {
	case <-f.release:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flushed = append(f.flushed, len(stale))
	return len(stale), f.err
}

func (f *stuckFlows) Reconcile(context.Context, []conntrack.Destination) (int, error) { return 0, nil }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testFlusher returns a Flusher that does not run, and the events that it has
// published.
func testFlusher(c Conntrack, save func([]conntrack.Change) error) (*Flusher, *events) {
	count := prometheus.NewCounter(prometheus.CounterOpts{Name: "count"})
	published := &events{}
	return NewFlusher(Config{
		Conntrack: c, Save: save, NoteErrors: count,
		Publish: published.add, Log: slog.New(slog.DiscardHandler), Metrics: &Metrics{Flows: count, FlowErrors: count},
	}), published
}

// events counts published events.
type events struct{ n atomic.Int32 }

func (e *events) add(*weftv1.WatchResponse) { e.n.Add(1) }

// runFlusher is testFlusher with a Flusher that runs until stop is called.
func runFlusher(t *testing.T, c Conntrack) (_ *Flusher, _ *events, stop func()) {
	t.Helper()
	f, published := testFlusher(c, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return f, published, stop
}

func commitEvent() *weftv1.WatchResponse {
	return &weftv1.WatchResponse{Event: &weftv1.WatchResponse_Commit{Commit: &weftv1.Commit{}}}
}

// TestFlusherJoinsAndNeverBlocks has commits go on while a pass is stuck.
func TestFlusherJoinsAndNeverBlocks(t *testing.T) {
	flows := &stuckFlows{entered: make(chan struct{}), release: make(chan struct{})}
	f, _, stop := runFlusher(t, flows)
	f.After(make([]conntrack.Change, 1), commitEvent())
	<-flows.entered
	for range 10 {
		f.After(make([]conntrack.Change, 2), commitEvent())
	}
	close(flows.release)
	<-flows.entered
	stop()
	flows.mu.Lock()
	defer flows.mu.Unlock()
	if len(flows.flushed) != 2 || flows.flushed[0] != 1 || flows.flushed[1] != 20 {
		t.Fatalf("passes over %v: want 1 and then 20", flows.flushed)
	}
}

func TestFlusherIsBounded(t *testing.T) {
	flows := &stuckFlows{entered: make(chan struct{}), release: make(chan struct{})}
	f, _, _ := runFlusher(t, flows)
	f.After(make([]conntrack.Change, 1), commitEvent())
	<-flows.entered
	for range 3 {
		f.After(make([]conntrack.Change, maxStale/2), commitEvent())
	}
	select {
	case <-f.overdue:
	default:
		t.Fatal("no comparison of all flows was asked for")
	}
	f.mu.Lock()
	n := len(f.stale)
	f.mu.Unlock()
	if n > maxStale {
		t.Fatalf("%d destinations wait", n)
	}
	close(flows.release)
}

// TestFlusherKeepsFewEvents has commits go on while a pass is stuck for ever:
// their events are sent, although the flows are not known.
func TestFlusherKeepsFewEvents(t *testing.T) {
	flows := &stuckFlows{entered: make(chan struct{}), release: make(chan struct{})}
	f, published, _ := runFlusher(t, flows)
	f.After(make([]conntrack.Change, 1), commitEvent())
	<-flows.entered
	for range maxEvents + 10 {
		f.After(nil, commitEvent())
	}
	f.mu.Lock()
	n := len(f.events)
	f.mu.Unlock()
	if told := published.n.Load(); n != maxEvents || told != 10 {
		t.Fatalf("%d events are kept and %d published: want %d and 10", n, told, maxEvents)
	}
	close(flows.release)
}

func TestFlusherAsksAgainAfterAnError(t *testing.T) {
	flows := &stuckFlows{entered: make(chan struct{}, 1), release: make(chan struct{}), err: errors.New("no")}
	close(flows.release)
	f, _, _ := runFlusher(t, flows)
	f.After(make([]conntrack.Change, 1), commitEvent())
	select {
	case <-f.overdue:
	case <-time.After(3 * time.Minute):
		t.Fatal("no comparison of all flows was asked for")
	}
}

// TestFlusherDrains ends the context of a Flusher that has work: it is done before Run
// returns, and its event is published.
func TestFlusherDrains(t *testing.T) {
	flows := &scriptedFlows{}
	f, published := testFlusher(flows, nil)
	f.cfg.Drain = 10 * time.Second
	f.After(lost(1), commitEvent())
	f.Reconcile(leads(2))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.Run(ctx)
	flows.want(t, "after Run", "1")
	if n := published.n.Load(); n != 1 {
		t.Errorf("%d events are published, want 1", n)
	}
}

// TestNoConntrack has nothing that removes flows: events are published at once.
func TestNoConntrack(t *testing.T) {
	f, published := testFlusher(nil, nil)
	f.Before(lost(1))
	f.After(lost(1), commitEvent())
	f.Reconcile(leads(1))
	f.Load(lost(1))
	f.Resume(nil)
	if n := published.n.Load(); n != 1 {
		t.Errorf("%d events are published, want 1", n)
	}
}
