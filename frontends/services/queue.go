package services

import (
	"sync"
	"time"
)

// queue knows what has come in and is not committed yet, and since when: what the
// health of the node is judged by.
type queue struct {
	now func() time.Time

	mu sync.Mutex
	// waiting has come in since the model was last refreshed; carried is what the
	// refreshes had found that no commit has yet.
	waiting, carried batch
	// last is when something was added last.
	last time.Time
	// refused is since when the rules of an IP family are refused as a whole, zero if
	// none are.
	refused time.Time
}

// batch are events that wait.
type batch struct {
	// since is when the oldest came in, zero if there is none.
	since            time.Time
	services, slices int
}

// add takes events that may change something.
func (q *queue) add(services, slices int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = q.now()
	if q.waiting.since.IsZero() {
		q.waiting.since = q.last
	}
	q.waiting.services += services
	q.waiting.slices += slices
}

// start has what waits wait from now on: before everything is known, nothing is
// published.
func (q *queue) start() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.waiting.since.IsZero() {
		q.waiting.since = q.now()
	}
}

// take notes that the next update carries what waits.
func (q *queue) take() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.carried.since.IsZero() {
		q.carried.since = q.waiting.since
	}
	q.carried.services += q.waiting.services
	q.carried.slices += q.waiting.slices
	q.waiting = batch{}
}

// fail notes that an update did not get through: something waits, even if no event
// has led to it.
func (q *queue) fail() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.carried.since.IsZero() {
		q.carried.since = q.now()
	}
}

// refuse notes that a family is refused as a whole: what it lacks waits until readmit,
// however many commits there are of the other one.
func (q *queue) refuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.refused.IsZero() {
		return
	}
	if q.refused = q.carried.since; q.refused.IsZero() {
		q.refused = q.now()
	}
}

// readmit notes that no family is refused any more, or none with Services.
func (q *queue) readmit() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refused = time.Time{}
}

// settle notes that all that was carried is committed, or needed no commit, and
// returns since when it waited, zero if nothing was.
func (q *queue) settle() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	since := q.carried.since
	q.carried = batch{}
	return since
}

// oldest returns since when the oldest event waits, zero if none does.
func (q *queue) oldest() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	since := q.carried.since
	if since.IsZero() {
		since = q.waiting.since
	}
	if since.IsZero() || !q.refused.IsZero() && q.refused.Before(since) {
		since = q.refused
	}
	return since
}

// length returns how many events of Services and of EndpointSlices wait.
func (q *queue) length() (services, slices int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.carried.services + q.waiting.services, q.carried.slices + q.waiting.slices
}
