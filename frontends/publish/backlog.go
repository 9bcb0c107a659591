package publish

import (
	"cmp"
	"sync"
	"time"
)

// Backlog has the events that arrived and are not committed, and when the oldest arrived:
// the health of a node is judged by it. It is safe for concurrent use.
type Backlog struct {
	now func() time.Time

	mu sync.Mutex
	// arrived came in since the last Refresh, taken is what the Refreshes before found
	// and no commit has.
	arrived, taken batch
	// frozen is since when a part of the fragment is frozen, zero if none is.
	frozen time.Time
}

// behind is how long a Refresh takes to come, usually.
const behind = 500 * time.Millisecond

// batch are events that wait.
type batch struct {
	// since is when the oldest arrived, zero if there is none.
	since  time.Time
	counts map[string]int
}

// NewBacklog returns an empty backlog; nil means time.Now.
func NewBacklog(now func() time.Time) *Backlog {
	if now == nil {
		now = time.Now
	}
	return &Backlog{now: now}
}

// Add adds events that may change something, counted by kind. Call Add and Take under the
// lock of the model, so that the events that Take counts are those that Refresh sees.
func (b *Backlog) Add(counts map[string]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived.add(batch{since: b.now(), counts: counts})
}

// add joins batches.
func (b *batch) add(o batch) {
	b.since = cmp.Or(b.since, o.since)
	for kind, n := range o.counts {
		if b.counts == nil {
			b.counts = make(map[string]int)
		}
		b.counts[kind] += n
	}
}

// Restart makes the events that arrived wait from now on. Call it before Config.Ready is
// closed: nothing is published earlier.
func (b *Backlog) Restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.arrived.since.IsZero() {
		b.arrived.since = b.now()
	}
}

// Take moves the events that arrived to the next update. A Renderer calls it in Refresh.
func (b *Backlog) Take() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken.add(b.arrived)
	b.arrived = batch{}
}

// fail notes that an update failed: something waits, even without an event.
func (b *Backlog) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken.add(batch{since: b.now()})
}

// setFrozen notes whether a part with items is frozen: what it lacks waits until it is not,
// however many commits there are of the rest.
func (b *Backlog) setFrozen(frozen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !frozen {
		b.frozen = time.Time{}
		return
	}
	b.frozen = cmp.Or(b.frozen, b.taken.since, b.now())
}

// commit notes that what was taken is committed or needed no commit, and returns since
// when it waited, zero if there was nothing.
func (b *Backlog) commit() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	since := b.taken.since
	b.taken = batch{}
	return since
}

// Oldest returns since when the oldest event waits, zero if none does.
func (b *Backlog) Oldest() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	since := cmp.Or(b.taken.since, b.arrived.since)
	if since.IsZero() || !b.frozen.IsZero() && b.frozen.Before(since) {
		since = b.frozen
	}
	return since
}

// Behind reports whether events have waited for a Refresh for more than a moment: the update before
// them has no answer.
func (b *Backlog) Behind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.arrived.since.IsZero() && b.now().Sub(b.arrived.since) > behind
}

// Length returns how many events of a kind wait.
func (b *Backlog) Length(kind string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken.counts[kind] + b.arrived.counts[kind]
}
