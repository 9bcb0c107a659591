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
	// Revision is the number of the update's commit, or of the last commit if there was no change.
	Revision uint64
	// Changes counts the changes of all updates in the commit; nil without a commit.
	Changes *weftv1.Counts
	// Err is nil, a *RejectedError, ErrNotFound, ErrStopped or ErrGone.
	Err error
}

type submission struct {
	update *desired.Update
	// admitted can compile the rules again; nil for withdrawals.
	admitted *admission.Builder
	// session is nil for unary calls.
	session *Session
	// alive may be nil: the sender never goes.
	alive Alive
	// declaration is as after the update; nil for withdrawals and unary calls.
	declaration *declaration
	// declares is true if the update changes declarations used by later patches of the session.
	declares bool
	// The writer sets durable if the fragment is durable before or after the update. stored updates come
	// from the state directory.
	durable, stored bool
	// mustExist makes the withdrawal of an unknown fragment an error.
	mustExist bool
	// reserved marks an update awaiting confirmation and its revert: only these and leaving may change such
	// a fragment.
	reserved bool
	// returns marks content restored by a revert: limits do not apply again.
	returns bool
	// ends marks the end of a session, after its last update.
	ends bool
	// leaving withdraws a fragment only if it has expired or no session owns it. owner is the fragment's
	// earlier session; expired is set only for a leaving fragment that has expired.
	leaving bool
	owner   uint64
	expired time.Time
	existed bool
	// before is the fragment's earlier expiration time.
	before  time.Time
	staging *staging
	// weight caches the part of writer.cost for new content; 0 means unknown.
	weight int
	// leaveTime is planner.LeaveTime before the update.
	leaveTime time.Duration
	queued    time.Time
	// result gets exactly one answer, without blocking.
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

func (s *submission) Publisher() string   { return s.update.Fragment.Publisher }
func (s *submission) Queued(at time.Time) { s.queued = at }
func (s *submission) Size() int {
	if s.admitted == nil {
		return 0
	}
	return s.admitted.Cost()
}

func (s *submission) withdraws() bool { return s.update.Snapshot && len(s.update.Tables) == 0 }

// Alive reports whether the sender of updates still waits for answers. Once false it stays false. The
// writer calls it before it applies each update, so it must not block.
//
// Alive prevents a killed publisher from overruling its successor with messages still in the socket. It
// suffices because one goroutine applies all updates.
type Alive func() bool

type aliveKey struct{}

// WithAlive returns a copy of ctx with alive. If ctx has ended or alive is false, the writer drops an
// update with ErrGone.
func WithAlive(ctx context.Context, alive Alive) context.Context {
	return context.WithValue(ctx, aliveKey{}, alive)
}

func aliveIn(ctx context.Context) Alive {
	alive, _ := ctx.Value(aliveKey{}).(Alive)
	return func() bool { return ctx.Err() == nil && (alive == nil || alive()) }
}

// DropAfter makes the writer drop, with ErrGone, updates of the session not applied before ctx ends. Call
// it before the first Push.
func (s *Session) DropAfter(ctx context.Context) { s.alive, s.done = aliveIn(ctx), ctx.Done() }

func (s *submission) gone() bool { return s.alive != nil && !s.alive() }

// A dropped update is not a rejection: it is valid.
func (w *writer) dropGone(s *submission) {
	w.metrics.dropped.Inc()
	w.log.Debug("dropped an update whose sender is gone", "fragment", s.key().String(), "snapshot", s.update.Snapshot,
		"lifetime", s.update.Lifetime.String())
	s.answer(Result{Err: ErrGone})
}
