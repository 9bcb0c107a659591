package aggregator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

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

func (f *stuckFlows) Flush(ctx context.Context, stale []conntrack.Stale) (int, error) {
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

func (f *stuckFlows) Reconcile(context.Context, []conntrack.Live) (int, error) { return 0, nil }

func newTestFlusher(t *testing.T, flows Flows) *flusher {
	t.Helper()
	m, err := newMetrics(nil, func() int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	f := newFlusher(flows, "", newHub(time.Now), slog.New(slog.DiscardHandler), m)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

func commitEvent() *weftv1.Event {
	return &weftv1.Event{Event: &weftv1.Event_Commit{Commit: &weftv1.Commit{}}}
}

// TestFlusherJoinsAndNeverBlocks has commits go on while a pass is stuck.
func TestFlusherJoinsAndNeverBlocks(t *testing.T) {
	flows := &stuckFlows{entered: make(chan struct{}), release: make(chan struct{})}
	f := newTestFlusher(t, flows)
	f.after(make([]conntrack.Stale, 1), commitEvent())
	<-flows.entered
	for range 10 {
		f.after(make([]conntrack.Stale, 2), commitEvent())
	}
	close(flows.release)
	<-flows.entered
	f.close(10 * time.Second)
	flows.mu.Lock()
	defer flows.mu.Unlock()
	if len(flows.flushed) != 2 || flows.flushed[0] != 1 || flows.flushed[1] != 20 {
		t.Fatalf("passes over %v: want 1 and then 20", flows.flushed)
	}
}

func TestFlusherIsBounded(t *testing.T) {
	flows := &stuckFlows{entered: make(chan struct{}), release: make(chan struct{})}
	f := newTestFlusher(t, flows)
	f.after(make([]conntrack.Stale, 1), commitEvent())
	<-flows.entered
	for range 3 {
		f.after(make([]conntrack.Stale, maxStale/2), commitEvent())
	}
	select {
	case <-f.behind:
	default:
		t.Fatal("nobody asked for a comparison of all flows")
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
// their events are told, though nobody knows the flows.
func TestFlusherKeepsFewEvents(t *testing.T) {
	flows := &stuckFlows{entered: make(chan struct{}), release: make(chan struct{})}
	f := newTestFlusher(t, flows)
	f.after(make([]conntrack.Stale, 1), commitEvent())
	<-flows.entered
	w := &watcher{events: make(chan *weftv1.Event, 2*watcherBuffer)}
	f.hub.watchers[w] = struct{}{}
	for range watcherBuffer + 10 {
		f.after(nil, commitEvent())
	}
	f.mu.Lock()
	n := len(f.events)
	f.mu.Unlock()
	if n != watcherBuffer || len(w.events) != 10 {
		t.Fatalf("%d events are kept and %d told: want %d and 10", n, len(w.events), watcherBuffer)
	}
	close(flows.release)
}

func TestFlusherAsksAgainAfterAnError(t *testing.T) {
	flows := &stuckFlows{entered: make(chan struct{}, 1), release: make(chan struct{}), err: errors.New("no")}
	close(flows.release)
	f := newTestFlusher(t, flows)
	f.after(make([]conntrack.Stale, 1), commitEvent())
	select {
	case <-f.behind:
	case <-time.After(20 * time.Second):
		t.Fatal("nobody asked for a comparison of all flows")
	}
}
