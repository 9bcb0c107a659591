package flows

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/conntrack"
)

// scriptedFlows answers removals with errors, while there are any, and notes the ports
// of what it is asked to remove.
type scriptedFlows struct {
	mu      sync.Mutex
	errs    []error
	flushed []string
}

func (f *scriptedFlows) Flush(_ context.Context, stale []conntrack.Change) (int, error) {
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
func lost(ports ...uint16) []conntrack.Change {
	var out []conntrack.Change
	for _, port := range ports {
		out = append(out, conntrack.Change{Addr: netip.MustParseAddr("10.96.0.1"), Port: port, Removed: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:53")}})
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
type memory struct{ stored []conntrack.Change }

func (m *memory) save(noted []conntrack.Change) error {
	m.stored = slices.Clone(noted)
	return nil
}

// want compares what the next start would read.
func (m *memory) want(t *testing.T, what string, want ...conntrack.Change) {
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
	many := make([]conntrack.Change, maxNoted)
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
	f.After(append(lost(1), make([]conntrack.Change, maxStale)...), commitEvent())
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
	f, published := testFlusher(&scriptedFlows{}, func([]conntrack.Change) error {
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
