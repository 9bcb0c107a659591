package aggregator

import (
	"sync"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// Result is the outcome of an update.
type Result struct {
	// Revision is that of the commit that carries the update, or the last one
	// where the update changed nothing.
	Revision uint64
	// Changes is what the commit changed, all its updates together; nil where
	// nothing was committed.
	Changes *weftv1.Counts
	Err     error
}

// submission is an admitted update on its way to the writer.
type submission struct {
	update *desired.Update
	// admitted allows to compile the rules again; nil for withdrawals.
	admitted *admission
	lifetime weftv1.Lifetime
	// session is who sends it, nil for unary calls.
	session *Session
	// serial numbers the updates of a session.
	serial uint64
	// declares is true when the update changes declarations, so that later
	// patches of the session are compiled against it.
	declares bool
	// after are the fragment's declarations once the update is committed.
	after declarations
	// durable is set by the writer where the fragment is durable before the
	// update or after it. A stored one comes from the state directory.
	durable, stored bool
	// mustExist makes the withdrawal of an unknown fragment an error.
	mustExist bool
	// leaving withdraws a fragment only if the session still owns it.
	leaving bool
	// result gets exactly one answer; it has room for it.
	result chan Result
}

func (s *submission) answer(r Result) { s.result <- r }

func (s *submission) key() desired.Key { return s.update.Fragment }

// withdraws reports whether the update takes the fragment away.
func (s *submission) withdraws() bool { return s.update.Snapshot && len(s.update.Tables) == 0 }

// queue holds what waits for the writer. Its length is bounded by those who
// submit: each stream and each unary call has a bounded number of updates in
// flight.
type queue struct {
	// nudge has room for one: the writer takes all there is at once.
	nudge chan struct{}

	mu     sync.Mutex
	items  []*submission
	closed bool
}

func newQueue() *queue { return &queue{nudge: make(chan struct{}, 1)} }

// put adds a submission; false means that the aggregator has stopped.
func (q *queue) put(s *submission) bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false
	}
	q.items = append(q.items, s)
	q.mu.Unlock()
	select {
	case q.nudge <- struct{}{}:
	default:
	}
	return true
}

// take removes and returns everything.
func (q *queue) take() []*submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// close refuses further submissions and returns those that are left.
func (q *queue) close() []*submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items, q.closed = nil, true
	return items
}
