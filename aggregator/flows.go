package aggregator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/conntrack"
)

// maxStale bounds what waits for a removal. What exceeds it is replaced by one
// comparison of all flows with the present state.
const maxStale = 1 << 16

// flowRetry is the time between a removal that did not succeed and another one.
const flowRetry = time.Second

// flusher removes UDP flows after commits, on a goroutine of its own, so that
// the next commit never waits for conntrack. Each pass takes all that commits
// have left until then.
type flusher struct {
	flows   Flows
	hub     *hub
	log     *slog.Logger
	metrics *metrics
	// behind asks the writer for a comparison of all flows.
	behind chan struct{}
	nudge  chan struct{}
	idle   chan struct{}

	mu     sync.Mutex
	stale  []conntrack.Stale
	live   []conntrack.Live
	all    bool
	events []*weftv1.Event
	busy   bool
	// note has the destinations that a later comparison would not find.
	note note
	// committing is true from before such a commit until after it; owing is true
	// while stale lacks some of what is noted, until the next comparison.
	committing, owing bool
}

// newFlusher makes a flusher; an empty dir keeps no note.
func newFlusher(flows Flows, dir string, hub *hub, log *slog.Logger, m *metrics) *flusher {
	return &flusher{
		flows: flows, hub: hub, log: log, metrics: m, note: note{dir: dir},
		behind: make(chan struct{}, 1), nudge: make(chan struct{}, 1), idle: make(chan struct{}, 1),
	}
}

// before notes the destinations that a commit is about to leave without a backend:
// should the process die before their flows are removed, only the note tells the next
// one of them. Not being able to write it is no reason to stop.
func (f *flusher) before(deserted []conntrack.Stale) {
	if f.flows == nil || len(deserted) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.committing = true
	f.noteFailed(f.note.add(deserted))
}

// noteFailed tells of a note that is not as it should be.
func (f *flusher) noteFailed(err error) {
	if err != nil {
		f.metrics.stateErrors.WithLabelValues(stateFlows).Inc()
		f.log.Error("flows to remove are not noted", "error", err)
	}
}

// resume removes what the run before had noted and not removed, but for destinations
// that lead somewhere all the same, as they do where it died before the commit.
func (f *flusher) resume(live func() []conntrack.Live) {
	if f.flows == nil {
		return
	}
	f.mu.Lock()
	f.noteFailed(f.note.load())
	noted := len(f.note.noted) > 0
	if noted {
		f.stale = append(f.stale, f.note.without(live())...)
	}
	f.mu.Unlock()
	if noted {
		f.wake()
	}
}

// after takes over what a commit made stale, and the commit's event, which is
// published with the number of flows that were removed. Where several commits
// share a pass, the last one's event has the number. It never blocks.
func (f *flusher) after(stale []conntrack.Stale, e *weftv1.Event) {
	f.mu.Lock()
	f.committing = false
	if f.flows == nil || len(stale) == 0 && len(f.events) == 0 && !f.busy {
		f.mu.Unlock()
		f.hub.publish(e)
		return
	}
	if len(f.events) >= watcherBuffer {
		// A pass that takes so long keeps no more of them back.
		f.hub.publish(f.events[0])
		f.events = f.events[1:]
	}
	f.events = append(f.events, e)
	f.stale = append(f.stale, stale...)
	if len(f.stale) > maxStale {
		f.stale, f.owing = nil, true
		f.ask()
	}
	f.mu.Unlock()
	f.wake()
}

// reconcile has all flows compared with where they may go.
func (f *flusher) reconcile(live []conntrack.Live) {
	if f.flows == nil {
		return
	}
	f.mu.Lock()
	f.live, f.all, f.owing = live, true, false
	// A removal may have failed, or been given up for this comparison.
	f.stale = append(f.stale, f.note.without(live)...)
	f.mu.Unlock()
	f.wake()
}

// ask has the writer call reconcile.
func (f *flusher) ask() {
	select {
	case f.behind <- struct{}{}:
	default:
	}
}

func (f *flusher) wake() {
	select {
	case f.nudge <- struct{}{}:
	default:
	}
}

// run removes flows until ctx ends.
func (f *flusher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.nudge:
		}
		if f.pass(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(flowRetry):
			f.ask()
		}
	}
}

// pass removes what has become stale so far; false means that it did not
// succeed.
func (f *flusher) pass(ctx context.Context) bool {
	f.mu.Lock()
	stale, live, all, events := f.stale, f.live, f.all, f.events
	f.stale, f.live, f.all, f.events = nil, nil, false, nil
	f.busy = true
	noted := len(f.note.noted)
	if f.committing || f.owing {
		noted = 0
	}
	f.mu.Unlock()
	var (
		deleted int
		err     error
	)
	if len(stale) > 0 {
		deleted, err = f.flows.Flush(ctx, stale)
	}
	if all && err == nil {
		var n int
		n, err = f.flows.Reconcile(ctx, live)
		deleted += n
	}
	f.metrics.flows.Add(float64(deleted))
	if err != nil && ctx.Err() == nil {
		f.metrics.flowErrors.Inc()
		f.log.Error("stale UDP flows are not removed", "error", err, "retry", flowRetry)
	}
	if deleted > 0 {
		f.log.Info("removed stale UDP flows", "flows", deleted)
	}
	if n := len(events); n > 0 {
		events[n-1].GetCommit().Flows = uint64(deleted) //nolint:gosec // a count
	}
	f.mu.Lock()
	for _, e := range events {
		f.hub.publish(e)
	}
	f.busy = false
	if err == nil {
		f.noteFailed(f.note.strike(noted))
	} else {
		f.owing = true
	}
	empty := len(f.stale) == 0 && !f.all && len(f.events) == 0
	f.mu.Unlock()
	if empty {
		select {
		case f.idle <- struct{}{}:
		default:
		}
	} else {
		f.wake()
	}
	return err == nil
}

// close waits until what commits have left is removed, at most for d.
func (f *flusher) close(d time.Duration) {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	for {
		f.mu.Lock()
		done := !f.busy && len(f.stale) == 0 && !f.all && len(f.events) == 0
		f.mu.Unlock()
		if done {
			return
		}
		select {
		case <-f.idle:
		case <-deadline.C:
			return
		}
	}
}
