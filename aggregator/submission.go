package aggregator

import (
	"context"
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

// Alive reports whether the sender of updates is still there to hear the answers.
// Once it is false it stays so. The writer asks for each update, at the time at
// which it applies it, so the answer must come at once.
//
// It keeps a publisher that was killed from overruling its successor: what it
// wrote last may still be in its socket when the successor's first update is
// acknowledged already. The writer is one goroutine, so nothing more is needed:
// what took effect of the predecessor's was applied while it lived, and
// so before anything of a successor that was started after its death.
type Alive func() bool

// aliveKey is the context key of an Alive.
type aliveKey struct{}

// WithAlive returns a copy of ctx that carries alive. An update of Apply, Delete or a
// Session (see [Session.DropAfter]) is dropped with ErrGone if ctx has ended or alive is
// false when the writer applies the update.
func WithAlive(ctx context.Context, alive Alive) context.Context {
	return context.WithValue(ctx, aliveKey{}, alive)
}

// aliveIn returns an Alive for the updates of a call: it is true while the
// call's context and the Alive in it are.
func aliveIn(ctx context.Context) Alive {
	alive, _ := ctx.Value(aliveKey{}).(Alive)
	return func() bool { return ctx.Err() == nil && (alive == nil || alive()) }
}

// DropAfter makes the writer drop updates of the session, with ErrGone, that it has not
// applied when ctx ends. Without it no update is dropped. Call it before the first
// Push.
func (s *Session) DropAfter(ctx context.Context) { s.alive, s.done = aliveIn(ctx), ctx.Done() }

// gone reports whether an update has lost its sender.
func (s *submission) gone() bool { return s.alive != nil && !s.alive() }

// dropGone answers an update without a sender. The update is not wrong, so it
// is not a rejection.
func (w *writer) dropGone(s *submission) {
	w.metrics.dropped.Inc()
	w.log.Debug("dropped an update whose sender is gone", "fragment", s.key().String(), "snapshot", s.update.Snapshot,
		"lifetime", s.update.Lifetime.String())
	s.answer(Result{Err: ErrGone})
}
