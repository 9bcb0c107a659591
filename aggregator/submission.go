package aggregator

import (
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
		s.session.stream.Pending.Add(-1)
	}
	if s.declaration != nil {
		s.declaration.pending.Add(-1)
	}
	s.result <- r
}

func (s *submission) key() desired.Key { return s.update.Fragment }

// Publisher, Size and Queued are for the queue.
func (s *submission) Publisher() string   { return s.update.Fragment.Publisher }
func (s *submission) Queued(at time.Time) { s.queued = at }
func (s *submission) Size() int {
	if s.admitted == nil {
		return 0
	}
	return s.admitted.Cost()
}

// withdraws reports whether the update withdraws the fragment.
func (s *submission) withdraws() bool { return s.update.Snapshot && len(s.update.Tables) == 0 }
