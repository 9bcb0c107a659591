package aggregator

import (
	"slices"
	"sync"
	"time"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// Result is the outcome of an update.
type Result struct {
	// Revision is the number of the commit with the update, or of the last commit
	// if the update changed nothing.
	Revision uint64
	// Changes counts what the commit changed, for all of its updates together. It
	// is nil if nothing was committed.
	Changes *weftv1.Counts
	// Err is why the update did not take effect: a *RejectedError, ErrNotFound,
	// ErrStopped or ErrGone. It is nil if the update is committed.
	Err error
}

// submission is an admitted update on its way to the writer.
type submission struct {
	update *desired.Update
	// admitted allows to compile the rules again; nil for withdrawals.
	admitted *admission.Builder
	// session sent the update; nil for unary calls.
	session *Session
	// alive reports whether the sender still waits; nil means always.
	alive Alive
	// declaration is what the fragment declares after the update; nil for withdrawals and
	// unary calls.
	declaration *declaration
	// declares is true when the update changes declarations, so that later
	// patches of the session are compiled against it.
	declares bool
	// durable is set by the writer if the fragment is durable before the update or
	// after it. stored is true for an update from the state directory.
	durable, stored bool
	// mustExist makes the withdrawal of an unknown fragment an error.
	mustExist bool
	// reserved is true for an update that is to be confirmed, and for the one that takes it
	// back: they alone change a fragment that waits for a confirmation.
	reserved bool
	// returns is true for content that an update which is taken back has replaced: it was within
	// the limits.
	returns bool
	// ends is true for the end of a session, after its last update.
	ends bool
	// leaving withdraws a fragment only if no session owns it any more, or if it has
	// expired: then owner is its session, and expired the time.
	leaving bool
	owner   uint64
	expired time.Time
	// existed is true if the fragment was there before the update.
	existed bool
	// before is when the fragment would have expired without the update.
	before time.Time
	// staging brings a part of the update to the kernel before its commit. It is nil if
	// that has not begun.
	staging *staging
	// weight is what writer.cost has computed of an admitted update; 0 if it has not.
	weight int
	// leaveTime is State.LeaveTime before the update.
	leaveTime time.Duration
	// queued is when the update began to wait.
	queued time.Time
	// result gets exactly one answer; it has room for it.
	result chan Result
}

func (s *submission) answer(r Result) {
	if s.session != nil && !s.leaving {
		s.session.pending.Add(-1)
	}
	if s.declaration != nil {
		s.declaration.pending.Add(-1)
	}
	s.result <- r
}

func (s *submission) key() desired.Key { return s.update.Fragment }

// withdraws reports whether the update withdraws the fragment.
func (s *submission) withdraws() bool { return s.update.Snapshot && len(s.update.Tables) == 0 }

// quantum is the cost from which an update is large, and the share of one
// publisher in a commit while others wait too. The kernel adds as many elements
// in about 10 ms (BenchmarkFairness: the kernel's time for 100,000).
const quantum = 4096

// quantumTime is the kernel's time for a quantum of elements without ranges.
const quantumTime = 10 * time.Millisecond

// alone is the share of a publisher while no other waits, in quanta.
const alone = 16

// queue holds the updates that wait for the writer, in a lane for each
// publisher. The updates of a lane keep their order. The length is bounded
// because each stream and each unary call has a bounded number of updates in
// flight.
// A commit has the small updates of all lanes, up to a share of each. A large
// update has a commit to itself. If both wait, they take turns: a small update
// waits for one large one at most, and a large one is not starved. In a lane,
// updates after a large one wait for it. Lanes take turns too: the lane that
// was served last comes last.
//
// A large update that is being staged stays at the head of its lane, which is held
// until the end. A publisher whose updates take long is paced: see pace.
type queue struct {
	now func() time.Time
	pace
	// nudge has room for one value: the writer looks at the whole queue.
	nudge chan struct{}

	mu sync.Mutex
	// lanes are the lanes that are not empty, in the order of their turns.
	lanes []*lane
	// large is true if the next turn is that of a large update.
	large  bool
	closed bool
}

// lane has the waiting updates of one publisher.
type lane struct {
	publisher string
	items     []*submission
	// held is true while the first update is being staged.
	held bool
}

func newQueue(now func() time.Time, limited func(publisher string) bool) *queue {
	return &queue{now: now, nudge: make(chan struct{}, 1), pace: newPace(limited)}
}

// put adds a submission; false means that the aggregator has stopped.
func (q *queue) put(s *submission) bool {
	s.queued = q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	l := q.lane(s.key().Publisher)
	l.items = append(l.items, s)
	q.noteActive(l.publisher, s.queued)
	q.wake()
	return true
}

// lane returns the lane of a publisher, made when it is new.
func (q *queue) lane(publisher string) *lane {
	for _, l := range q.lanes {
		if l.publisher == publisher {
			return l
		}
	}
	l := &lane{publisher: publisher}
	q.lanes = append(q.lanes, l)
	return l
}

// wake makes the writer look at the queue.
func (q *queue) wake() {
	select {
	case q.nudge <- struct{}{}:
	default:
	}
}

// hold puts an update that was taken back to the head of its lane, and holds the lane.
func (q *queue) hold(s *submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lane(s.key().Publisher)
	l.items = slices.Insert(slices.Clone(l.items), 0, s)
	l.held = true
}

// release ends the hold of the lane of an update. If done is true, the update was
// answered and is removed; otherwise it is taken in its turn.
func (q *queue) release(s *submission, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lane(s.key().Publisher)
	l.held = false
	if done {
		q.cut(l, 1)
	}
	q.wake()
}

// ready reports whether take would return something.
func (q *queue) ready() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	return slices.ContainsFunc(q.lanes, func(l *lane) bool { return q.open(l, now) })
}

// open reports whether a lane is neither held nor paced.
func (q *queue) open(l *lane, now time.Time) bool { return !l.held && !q.paced(l.publisher, now) }

// take removes and returns the updates of the next commit, or nil. cost returns
// how many elements and rules an update changes.
func (q *queue) take(cost func(*submission) int) []*submission {
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

// takeSmall removes each lane's share of small updates.
func (q *queue) takeSmall(cost func(*submission) int) (batch []*submission) {
	share := quantum
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

// share returns how many of the lane's first updates are small, and cost a share together.
func (l *lane) share(cost func(*submission) int, share int) (n int) {
	for ; n < len(l.items) && share > 0; n++ {
		c := cost(l.items[n])
		if c >= quantum {
			break
		}
		share -= c
	}
	return n
}

// takeLarge removes the first large update at the head of a lane, or the share of a slow
// publisher.
func (q *queue) takeLarge(cost func(*submission) int) []*submission {
	now := q.now()
	for _, l := range q.lanes {
		n := 0
		switch {
		case !q.open(l, now):
		case cost(l.items[0]) >= quantum:
			n = 1
		case q.of(l.publisher).slow:
			n = l.share(cost, quantum)
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

// cut removes the first n updates of a lane, and an empty lane.
func (q *queue) cut(l *lane, n int) []*submission {
	batch := l.items[:n:n]
	l.items = l.items[n:]
	if len(l.items) == 0 {
		q.lanes = slices.DeleteFunc(q.lanes, func(o *lane) bool { return o == l })
	}
	return batch
}

func (q *queue) len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		n += len(l.items)
	}
	return n
}

// close refuses further submissions and returns those that are left.
func (q *queue) close() (left []*submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		left = append(left, l.items...)
	}
	q.lanes, q.closed = nil, true
	return left
}
