package flows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

func (f *stuckFlows) Reconcile(context.Context, []conntrack.Destination) (int, error) { return 0, nil }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testFlusher returns a Flusher that does not run, and the events that it has
// published.
func testFlusher(c Conntrack, save func([]conntrack.Stale) error) (*Flusher, *events) {
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
	f.After(make([]conntrack.Stale, 1), commitEvent())
	<-flows.entered
	for range 10 {
		f.After(make([]conntrack.Stale, 2), commitEvent())
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
	f.After(make([]conntrack.Stale, 1), commitEvent())
	<-flows.entered
	for range 3 {
		f.After(make([]conntrack.Stale, maxStale/2), commitEvent())
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
	f.After(make([]conntrack.Stale, 1), commitEvent())
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
	f.After(make([]conntrack.Stale, 1), commitEvent())
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

// answering has flows that answers begin after two removals.
type answering struct {
	mu    sync.Mutex
	calls [][]conntrack.Stale
}

// removals returns the calls of Flush.
func (a *answering) removals() [][]conntrack.Stale {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func (a *answering) Flush(_ context.Context, stale []conntrack.Stale) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, stale)
	return max(3-len(a.calls), 0), nil
}

func (a *answering) Reconcile(context.Context, []conntrack.Destination) (int, error) { return 1, nil }

// TestFlusherFollowsAnswers removes what was not translated, then what answers have begun, until there is none.
func TestFlusherFollowsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answering{}
		f, _, stop := runFlusher(t, a)
		defer stop()
		first := conntrack.Stale{Addr: netip.MustParseAddr("10.96.0.1"), Port: 53, First: true}
		translated := conntrack.Stale{Addr: first.Addr, Port: 54, Removed: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:53")}}
		f.After([]conntrack.Stale{first, translated}, nil)
		synctest.Wait()
		if n := len(a.removals()); n != 1 {
			t.Fatalf("%d removals at once, want 1", n)
		}
		<-time.After(10 * answerDelay)
		synctest.Wait()
		calls := a.removals()
		if len(calls) != 3 {
			t.Fatalf("%d removals, want 3", len(calls))
		}
		for _, stale := range calls[1:] {
			if len(stale) != 1 || stale[0].Addr != first.Addr || stale[0].Port != 53 || !stale[0].First || !stale[0].Answered {
				t.Errorf("removed %v, want what %v has begun", stale, first)
			}
		}
		// A comparison that removes flows is followed, too.
		f.Reconcile([]conntrack.Destination{{Addr: first.Addr, Port: 53}})
		<-time.After(10 * answerDelay)
		synctest.Wait()
		if calls = a.removals(); len(calls) != 4 || !calls[3][0].Answered {
			t.Errorf("%d removals after a comparison, want 4", len(calls))
		}
	})
}

// scriptedFlows answers removals with errors, while there are any, and notes the ports
// of what it is asked to remove.
type scriptedFlows struct {
	mu      sync.Mutex
	errs    []error
	flushed []string
}

func (f *scriptedFlows) Flush(_ context.Context, stale []conntrack.Stale) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ports []string
	for _, s := range stale {
		ports = append(ports, fmt.Sprint(s.Port))
	}
	f.flushed = append(f.flushed, strings.Join(ports, " "))
	if len(f.errs) == 0 {
		return 0, nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return 0, err
}

func (f *scriptedFlows) Reconcile(context.Context, []conntrack.Destination) (int, error) {
	return 0, nil
}

func (f *scriptedFlows) want(t *testing.T, what string, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.flushed, want) {
		t.Errorf("%s: removals of %q, want %q", what, f.flushed, want)
	}
	f.flushed = nil
}

// lost is a destination that has lost its last backend, told by its port.
func lost(ports ...uint16) []conntrack.Stale {
	var out []conntrack.Stale
	for _, port := range ports {
		out = append(out, conntrack.Stale{Addr: netip.MustParseAddr("10.96.0.1"), Port: port, Removed: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:53")}})
	}
	return out
}

func leads(ports ...uint16) []conntrack.Destination {
	var out []conntrack.Destination
	for _, s := range lost(ports...) {
		out = append(out, conntrack.Destination{Addr: s.Addr, Port: s.Port, Backends: s.Removed})
	}
	return out
}

// memory has what was saved.
type memory struct{ stored []conntrack.Stale }

func (m *memory) save(noted []conntrack.Stale) error {
	m.stored = slices.Clone(noted)
	return nil
}

// want compares what the next start would read.
func (m *memory) want(t *testing.T, what string, want ...conntrack.Stale) {
	t.Helper()
	if fmt.Sprint(m.stored) != fmt.Sprint(want) {
		t.Errorf("%s: %v is noted, want %v", what, m.stored, want)
	}
}

func TestFlowsAreNotedUntilRemoved(t *testing.T) {
	notes, flows := &memory{}, &scriptedFlows{}
	f, _ := testFlusher(flows, notes.save)
	pass := func(want bool) {
		t.Helper()
		if got := f.pass(t.Context()) == nil; got != want {
			t.Errorf("pass = %v, want %v", got, want)
		}
	}
	f.Before(nil)
	f.After(lost(1), commitEvent())
	notes.want(t, "a destination that has other backends")
	f.Before(lost(2))
	notes.want(t, "before the commit", lost(2)...)
	pass(true)
	notes.want(t, "a pass during the commit", lost(2)...)
	f.After(lost(2), commitEvent())
	f.Before(lost(3))
	f.After(lost(3), commitEvent())
	notes.want(t, "two commits", lost(2, 3)...)
	pass(true)
	notes.want(t, "after the pass")
	flows.want(t, "three commits", "1", "2 3")

	flows.errs = []error{errors.New("no")}
	f.Before(lost(4, 5))
	f.After(lost(4, 5), commitEvent())
	pass(false)
	notes.want(t, "after a failure", lost(4, 5)...)
	f.After(lost(6), commitEvent())
	pass(true)
	notes.want(t, "after another commit's pass", lost(4, 5)...)
	f.Reconcile(leads(5))
	pass(true)
	notes.want(t, "after the comparison")
	flows.want(t, "a failure", "4 5", "6", "4")
}

func TestFlowsOfTheRunBefore(t *testing.T) {
	notes, flows := &memory{}, &scriptedFlows{}
	f, _ := testFlusher(flows, notes.save)
	f.Before(lost(1, 2, 3))
	f, _ = testFlusher(flows, notes.save)
	f.Load(notes.stored)
	f.Resume(func() []conntrack.Destination { return leads(2) })
	notes.want(t, "before the pass", lost(1, 2, 3)...)
	_ = f.pass(t.Context())
	flows.want(t, "the start", "1 3")
	notes.want(t, "after the pass")

	f, _ = testFlusher(flows, notes.save)
	f.Load(notes.stored)
	f.Resume(func() []conntrack.Destination { t.Error("the state is listed, though nothing is noted"); return nil })
}

// TestFlowNotesAreBounded has too many destinations lose everything.
func TestFlowNotesAreBounded(t *testing.T) {
	n, _ := testFlusher(nil, (&memory{}).save)
	many := make([]conntrack.Stale, maxNoted)
	must(t, n.add(many[:maxNoted-1]))
	if err := n.add(many[:2]); err == nil || !strings.Contains(err.Error(), "and 1 are noted") {
		t.Errorf("add = %v, want an error that says how many", err)
	}
	if len(n.noted) != maxNoted {
		t.Errorf("%d are noted", len(n.noted))
	}
	must(t, n.strike(maxNoted))
	// Without Save they are noted in memory.
	unsaved, _ := testFlusher(nil, nil)
	if err := errors.Join(unsaved.add(lost(1, 2)), unsaved.strike(1)); err != nil || len(unsaved.noted) != 1 {
		t.Errorf("%v, %v noted", err, unsaved.noted)
	}
}

// TestFlowNoteOfAnOverflow has so much wait that the comparison takes its place.
func TestFlowNoteOfAnOverflow(t *testing.T) {
	notes, flows := &memory{}, &scriptedFlows{}
	f, _ := testFlusher(flows, notes.save)
	f.Before(lost(1))
	f.After(append(lost(1), make([]conntrack.Stale, maxStale)...), commitEvent())
	_ = f.pass(t.Context())
	notes.want(t, "before the comparison", lost(1)...)
	select {
	case <-f.overdue:
	case <-time.After(time.Second):
		t.Fatal("the comparison was not asked for")
	}
	f.Reconcile(nil)
	_ = f.pass(t.Context())
	flows.want(t, "the comparison", "1")
	notes.want(t, "after the comparison")
}

// TestFailedRemovalIsRepeatedWithoutNotes has a removal fail while there is no state directory: the comparison that follows
// removes the flows to destinations that are gone.
func TestFailedRemovalIsRepeatedWithoutNotes(t *testing.T) {
	flows := &scriptedFlows{errs: []error{errors.New("no"), errors.New("no")}}
	f, _ := testFlusher(flows, nil)
	f.Before(lost(1, 2))
	f.After(lost(1, 2), commitEvent())
	for range 2 {
		if f.pass(t.Context()) == nil {
			t.Fatal("the removal has not failed")
		}
		f.Reconcile(leads(2))
	}
	must(t, f.pass(t.Context()))
	flows.want(t, "two failures", "1 2", "1", "1")
	f.Reconcile(nil)
	_ = f.pass(t.Context())
	flows.want(t, "after the removal")
}

// TestNothingWaitsForANote has the disk hang while a note is removed: commits go on.
func TestNothingWaitsForANote(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	saves := 0
	f, published := testFlusher(&scriptedFlows{}, func([]conntrack.Stale) error {
		if saves++; saves == 2 {
			close(entered)
			<-release
		}
		return nil
	})
	f.Before(lost(1))
	f.After(lost(1), commitEvent())
	passed, committed := make(chan bool), make(chan struct{})
	go func() { passed <- f.pass(t.Context()) == nil }()
	<-entered
	go func() {
		defer close(committed)
		for range 100 {
			f.Before(nil)
			f.After(lost(2), commitEvent())
			f.Reconcile(leads(1))
		}
	}()
	select {
	case <-committed:
	case <-time.After(3 * time.Minute):
		t.Error("commits wait for the disk")
	}
	close(release)
	if !<-passed {
		t.Error("the pass fails")
	}
	<-committed
	_ = f.pass(t.Context())
	if n := published.n.Load(); n != 101 {
		t.Errorf("%d events, want 101", n)
	}
}
