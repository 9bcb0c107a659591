package publish

import (
	"cmp"
	"sync"
	"time"
)

// Backlog counts uncommitted events and records the oldest arrival. It is safe for concurrent use.
type Backlog struct {
	now func() time.Time

	mu sync.Mutex
	// arrived has the events since the last Take; taken has the taken, uncommitted events.
	arrived, taken batch
	// start of the freeze of a part, or zero
	frozen time.Time
}

// behind is the longest usual wait for a Take.
const behind = 500 * time.Millisecond

type batch struct {
	// oldest arrival, or zero
	since  time.Time
	counts map[string]int
}

// NewBacklog returns an empty backlog. A nil now means time.Now.
func NewBacklog(now func() time.Time) *Backlog {
	if now == nil {
		now = time.Now
	}
	return &Backlog{now: now}
}

// Add adds events, counted by kind. Call Add and Take under the model's lock.
func (b *Backlog) Add(counts map[string]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived.add(batch{since: b.now(), counts: counts})
}

func (b *batch) add(o batch) {
	b.since = cmp.Or(b.since, o.since)
	for kind, n := range o.counts {
		if b.counts == nil {
			b.counts = make(map[string]int)
		}
		b.counts[kind] += n
	}
}

// Restart sets the arrival of all waiting events to now. Call it before Config.Ready is closed.
func (b *Backlog) Restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.arrived.since.IsZero() {
		b.arrived.since = b.now()
	}
}

// Take moves arrived events to the next update.
func (b *Backlog) Take() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken.add(b.arrived)
	b.arrived = batch{}
}

// fail counts a failed update as waiting, even without an event.
func (b *Backlog) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken.add(batch{since: b.now()})
}

// setFrozen counts the changes of a frozen part as waiting until it thaws, even if other parts are committed.
func (b *Backlog) setFrozen(frozen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !frozen {
		b.frozen = time.Time{}
		return
	}
	b.frozen = cmp.Or(b.frozen, b.taken.since, b.now())
}

// commit forgets the taken events, and returns the oldest arrival, or zero.
func (b *Backlog) commit() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	since := b.taken.since
	b.taken = batch{}
	return since
}

// Oldest returns the arrival of the oldest waiting event, or zero.
func (b *Backlog) Oldest() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	since := cmp.Or(b.taken.since, b.arrived.since)
	if since.IsZero() || !b.frozen.IsZero() && b.frozen.Before(since) {
		since = b.frozen
	}
	return since
}

// Behind reports whether events wait unusually long for a Refresh.
func (b *Backlog) Behind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.arrived.since.IsZero() && b.now().Sub(b.arrived.since) > behind
}

// Length returns the number of waiting events of a kind.
func (b *Backlog) Length(kind string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken.counts[kind] + b.arrived.counts[kind]
}
