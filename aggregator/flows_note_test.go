package aggregator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
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

func (f *scriptedFlows) Reconcile(context.Context, []conntrack.Live) (int, error) { return 0, nil }

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
		out = append(out, conntrack.Stale{Addr: netip.MustParseAddr("10.96.0.1"), Port: port, Gone: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:53")}})
	}
	return out
}

func leads(ports ...uint16) []conntrack.Live {
	var out []conntrack.Live
	for _, s := range lost(ports...) {
		out = append(out, conntrack.Live{Addr: s.Addr, Port: s.Port, Backends: s.Gone})
	}
	return out
}

// wantNoted compares what the next start would read.
func wantNoted(t *testing.T, dir, what string, want ...conntrack.Stale) {
	t.Helper()
	n := note{dir: dir}
	if err := n.load(); err != nil || fmt.Sprint(n.noted) != fmt.Sprint(want) {
		t.Errorf("%s: %v is noted (%v), want %v", what, n.noted, err, want)
	}
}

// noteFlusher is one that does not run: passes are the test's to make.
func noteFlusher(t *testing.T, flows Flows, dir string) *flusher {
	t.Helper()
	m, err := newMetrics(nil, func() int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	return newFlusher(flows, dir, newHub(time.Now), slog.New(slog.DiscardHandler), m)
}

func TestFlowsAreNotedUntilRemoved(t *testing.T) {
	dir, flows := t.TempDir(), &scriptedFlows{}
	f := noteFlusher(t, flows, dir)
	pass := func(want bool) {
		t.Helper()
		if got := f.pass(t.Context()); got != want {
			t.Errorf("pass = %v, want %v", got, want)
		}
	}
	f.before(nil)
	f.after(lost(1), commitEvent())
	wantNoted(t, dir, "a destination that has other backends")
	f.before(lost(2))
	wantNoted(t, dir, "before the commit", lost(2)...)
	pass(true)
	wantNoted(t, dir, "a pass during the commit", lost(2)...)
	f.after(lost(2), commitEvent())
	f.before(lost(3))
	f.after(lost(3), commitEvent())
	wantNoted(t, dir, "two commits", lost(2, 3)...)
	pass(true)
	wantNoted(t, dir, "after the pass")
	flows.want(t, "three commits", "1", "2 3")
	if _, err := os.Stat(f.note.path()); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}

	flows.errs = []error{errors.New("no")}
	f.before(lost(4, 5))
	f.after(lost(4, 5), commitEvent())
	pass(false)
	wantNoted(t, dir, "after a failure", lost(4, 5)...)
	f.after(lost(6), commitEvent())
	pass(true)
	wantNoted(t, dir, "after another commit's pass", lost(4, 5)...)
	f.reconcile(leads(5))
	pass(true)
	wantNoted(t, dir, "after the comparison")
	flows.want(t, "a failure", "4 5", "6", "4")
}

func TestFlowsOfTheRunBefore(t *testing.T) {
	dir, flows := t.TempDir(), &scriptedFlows{}
	f := noteFlusher(t, flows, dir)
	f.before(lost(1, 2, 3))
	f = noteFlusher(t, flows, dir)
	f.resume(func() []conntrack.Live { return leads(2) })
	wantNoted(t, dir, "before the pass", lost(1, 2, 3)...)
	f.pass(t.Context())
	flows.want(t, "the start", "1 3")
	wantNoted(t, dir, "after the pass")

	f = noteFlusher(t, flows, dir)
	f.resume(func() []conntrack.Live { t.Error("the state is listed, though nothing is noted"); return nil })

	for _, damage := range []string{"", "weft-flows 1 sha256:00\n[]", string(noteSeal.add([]byte("{")))} {
		if err := os.WriteFile(f.note.path(), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		f = noteFlusher(t, flows, dir)
		f.resume(func() []conntrack.Live { return nil })
		wantNoted(t, dir, "a damaged file, which has to go")
	}
	f.before(lost(7))
	wantNoted(t, dir, "after damage", lost(7)...)
}

// TestFlowNotesAreBounded has too many destinations lose everything.
func TestFlowNotesAreBounded(t *testing.T) {
	dir := t.TempDir()
	n := note{dir: dir}
	many := make([]conntrack.Stale, maxNoted)
	if err := n.add(many[:maxNoted-1]); err != nil {
		t.Fatal(err)
	}
	if err := n.add(many[:2]); err == nil || !strings.Contains(err.Error(), "and 1 are noted") {
		t.Errorf("add = %v, want an error that says how many", err)
	}
	if len(n.noted) != maxNoted {
		t.Errorf("%d are noted", len(n.noted))
	}
	if err := n.strike(maxNoted); err != nil {
		t.Fatal(err)
	}
	// Where there is no state directory, nothing is noted.
	n = note{}
	if err := errors.Join(n.add(lost(1)), n.load(), n.strike(0)); err != nil || len(n.noted) > 0 {
		t.Errorf("%v, %v noted", err, n.noted)
	}
}

// TestFlowNoteOfAnOverflow has so much wait that the comparison takes its place.
func TestFlowNoteOfAnOverflow(t *testing.T) {
	dir, flows := t.TempDir(), &scriptedFlows{}
	f := noteFlusher(t, flows, dir)
	f.before(lost(1))
	f.after(append(lost(1), make([]conntrack.Stale, maxStale)...), commitEvent())
	f.pass(t.Context())
	wantNoted(t, dir, "before the comparison", lost(1)...)
	select {
	case <-f.behind:
	case <-time.After(time.Second):
		t.Fatal("nobody asked for the comparison")
	}
	f.reconcile(nil)
	f.pass(t.Context())
	flows.want(t, "the comparison", "1")
	wantNoted(t, dir, "after the comparison")
}

// BenchmarkNote is what a commit that leaves destinations without a backend waits for.
func BenchmarkNote(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("%d destinations", n), func(b *testing.B) {
			note, deserted := note{dir: b.TempDir()}, make([]conntrack.Stale, n)
			for i := range deserted {
				deserted[i] = lost(uint16(i))[0] //nolint:gosec // a port
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := errors.Join(note.add(deserted), note.strike(n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
