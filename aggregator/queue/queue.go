package queue

import (
	"slices"
	"sync"
	"time"
)

// Quantum is the cost of the smallest large update, and the share of a publisher in a commit while others
// wait, in elements and rules. The kernel adds a Quantum of elements in about QuantumTime.
const (
	Quantum     = 4096
	QuantumTime = 10 * time.Millisecond
)

// Update waits for a commit.
type Update interface {
	comparable
	// Publisher names the lane.
	Publisher() string
	// Size is in elements and rules.
	Size() int
	Queued(at time.Time)
}

// alone is the share of a publisher while no other waits, in quanta.
const alone = 16

// Queue holds the updates that wait for a commit.
type Queue[U Update] struct {
	now func() time.Time
	pace
	nudge chan struct{}

	mu sync.Mutex
	// lanes are non-empty, in the order of their turns.
	lanes []*lane[U]
	// large is true if the next turn belongs to a large update.
	large  bool
	closed bool
}

type lane[U Update] struct {
	publisher string
	items     []U
	// held is true while the first update is being staged.
	held bool
}

// New returns an empty Queue. limited reports whether the configuration limits a publisher.
func New[U Update](now func() time.Time, limited func(publisher string) bool) *Queue[U] {
	return &Queue[U]{now: now, nudge: make(chan struct{}, 1), pace: newPace(limited)}
}

// Nudge receives a value when the queue has changed or a pause is over: call Ready again.
func (q *Queue[U]) Nudge() <-chan struct{} { return q.nudge }

// Put returns false after Close.
func (q *Queue[U]) Put(s U) bool {
	now := q.now()
	s.Queued(now)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	l := q.lane(s.Publisher())
	l.items = append(l.items, s)
	q.noteActive(l.publisher, now)
	q.wake()
	return true
}

func (q *Queue[U]) lane(publisher string) *lane[U] {
	for _, l := range q.lanes {
		if l.publisher == publisher {
			return l
		}
	}
	l := &lane[U]{publisher: publisher}
	q.lanes = append(q.lanes, l)
	return l
}

func (q *Queue[U]) wake() {
	select {
	case q.nudge <- struct{}{}:
	default:
	}
}

// Hold returns an update from Take to the head of the lane. Take skips the lane until Release.
func (q *Queue[U]) Hold(s U) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lane(s.Publisher())
	l.items = slices.Insert(slices.Clone(l.items), 0, s)
	l.held = true
}

// Release ends a Hold. If done is true, the update was answered and leaves the queue.
func (q *Queue[U]) Release(s U, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lane(s.Publisher())
	l.held = false
	if done {
		q.cut(l, 1)
	}
	q.wake()
}

// Ready reports whether Take would return updates.
func (q *Queue[U]) Ready() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	return slices.ContainsFunc(q.lanes, func(l *lane[U]) bool { return q.open(l, now) })
}

func (q *Queue[U]) open(l *lane[U], now time.Time) bool { return !l.held && !q.paced(l.publisher, now) }

// Take removes and returns the updates of the next commit, or nil. cost is in elements and rules.
func (q *Queue[U]) Take(cost func(U) int) []U {
	q.mu.Lock()
	defer q.mu.Unlock()
	turn := q.large
	q.large = !turn
	if turn {
		if batch := q.takeLarge(cost); batch != nil {
			return batch
		}
	}
	if batch := q.takeSmall(cost); batch != nil {
		q.large = true
		return batch
	}
	q.large = false
	return q.takeLarge(cost)
}

func (q *Queue[U]) takeSmall(cost func(U) int) (batch []U) {
	share := Quantum
	if len(q.lanes) == 1 {
		share *= alone
	}
	now := q.now()
	for _, l := range slices.Clone(q.lanes) {
		if q.open(l, now) && !q.of(l.publisher).slow {
			batch = append(batch, q.cut(l, l.share(cost, share))...)
		}
	}
	return batch
}

// share counts the small updates at the head of the lane within a share.
func (l *lane[U]) share(cost func(U) int, share int) (n int) {
	for ; n < len(l.items) && share > 0; n++ {
		c := cost(l.items[n])
		if c >= Quantum {
			break
		}
		share -= c
	}
	return n
}

func (q *Queue[U]) takeLarge(cost func(U) int) []U {
	now := q.now()
	for _, l := range q.lanes {
		n := 0
		switch {
		case !q.open(l, now):
		case cost(l.items[0]) >= Quantum:
			n = 1
		case q.of(l.publisher).slow:
			n = l.share(cost, Quantum)
		}
		if n > 0 {
			batch := q.cut(l, n)
			if i := slices.Index(q.lanes, l); i >= 0 {
				q.lanes = append(slices.Delete(q.lanes, i, i+1), l)
			}
			return batch
		}
	}
	return nil
}

// cut also removes an empty lane.
func (q *Queue[U]) cut(l *lane[U], n int) []U {
	batch := l.items[:n:n]
	l.items = l.items[n:]
	if len(l.items) == 0 {
		q.lanes = slices.DeleteFunc(q.lanes, func(o *lane[U]) bool { return o == l })
	}
	return batch
}

// Len returns the number of updates.
func (q *Queue[U]) Len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		n += len(l.items)
	}
	return n
}

// Close returns the updates that are left. Put refuses further updates.
func (q *Queue[U]) Close() (left []U) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		left = append(left, l.items...)
	}
	q.lanes, q.closed = nil, true
	return left
}
