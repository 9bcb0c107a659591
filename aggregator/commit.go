package aggregator

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/nft/kernel"
)

// maxFailures is the number of failures with an unknown outcome before a batch is divided.
const maxFailures = 3

// commit applies a batch and commits it. If the kernel refuses it, commit answers the updates at fault and
// returns the others in groups to retry. On an error the kernel may differ from the state, and the groups
// hold all unanswered updates.
func (w *writer) commit(batch []*submission) (again [][]*submission, err error) {
	if err := w.repairFor(batch, w.suspected); err != nil {
		return [][]*submission{batch}, err
	}
	if len(batch) == 0 {
		return nil, nil
	}
	w.keeper.lapse()
	began, charge := w.cfg.Now(), w.queue.Meter(batch, false)
	again, err = w.commitApplied(w.apply(batch), began)
	charge()
	return again, err
}

func (w *writer) commitApplied(accepted []*submission, began time.Time) (again [][]*submission, err error) {
	if len(accepted) == 0 {
		w.state.Rollback()
		return nil, nil
	}
	plan := planner.Make(w.state)
	if err := w.merger.bound(accepted, plan); err != nil {
		w.state.Rollback()
		return w.refused(accepted, plan, err)
	}
	w.save()
	built := w.cfg.Now()
	stats, err := w.carryOut(plan)
	if err != nil {
		w.save()
		return w.refused(accepted, plan, err)
	}
	c := &outcome{state: w.state, revision: w.revision, accepted: accepted, plan: plan, stats: stats}
	if len(plan.Ops) > 0 {
		w.failures, w.suspected = 0, false
		c.counts, c.timing = message.Counts(plan.Counts), measure(accepted, began, built, w.cfg.Now())
	}
	w.tell.committed(c)
	w.answer(accepted, Result{Revision: c.revision, Changes: c.counts})
	if len(plan.Ops) == 0 {
		return nil, nil
	}
	w.tell.announce(c)
	if w.purger.Busy() {
		w.purger.Step()
	}
	return nil, nil
}

// apply answers the rejected updates and returns the others in the order of desired.Plan.Origin.
func (w *writer) apply(batch []*submission) []*submission {
	accepted := make([]*submission, 0, len(batch))
	for i := 0; i < len(batch); i++ {
		s := batch[i]
		switch {
		case s.ends:
			batch = slices.Insert(batch, i+1, w.lifetimes.end(s.session)...)
			s.answer(Result{Revision: w.revision})
			continue
		case s.gone():
			w.dropGone(s)
			continue
		}
		f, ok := views.Fragment(w.state, s.key())
		if done, err := w.merger.check(s, f, ok); err != nil {
			w.refuse(s, err)
			continue
		} else if done {
			s.answer(Result{Revision: w.revision})
			continue
		}
		s.existed, s.owner, s.before, s.expired = ok, f.Session, f.Expires, time.Time{}
		if s.leaving && w.lifetimes.expired(f) {
			s.expired = f.Expires
		}
		s.durable = f.Lifetime == desired.LifetimeDurable || s.update.Snapshot && (s.update.Lifetime == desired.LifetimeDurable || w.merger.isOrphan(s.key()))
		if w.merger.refusable(s) {
			s.leaveTime, _ = planner.LeaveTime(w.state, s.key())
		}
		if err := w.merger.apply(s); err != nil {
			w.refuse(s, err)
			continue
		}
		accepted = append(accepted, s)
	}
	return accepted
}

func (w *writer) refuse(s *submission, err error) {
	_, exists := views.Fragment(w.state, s.key())
	switch c := s.session; {
	case c == nil:
	case !exists:
		// Patches need a snapshot in any case.
		delete(c.broken, s.key().Name)
	case s.declares:
		c.broken[s.key().Name] = s.update.Serial
	}
	first := true
	if s.leaving {
		first = !w.lifetimes.abandoned[s.key()]
		w.lifetimes.abandoned[s.key()] = true
	}
	// A stored fragment is tried several times: only the last outcome counts.
	var rejected *RejectedError
	if errors.As(err, &rejected) && first && !s.stored {
		w.tell.report(rejected)
	}
	s.answer(Result{Err: err})
	if s.session != nil && !exists {
		s.session.gone(s.key().Name, false)
	}
}

// refused is called after the state has been rolled back.
func (w *writer) refused(batch []*submission, plan *desired.Plan, err error) (again [][]*submission, _ error) {
	var be *kernel.BatchError
	var long *longError
	switch {
	case errors.As(err, &long) && len(batch) == 1:
		w.refuse(batch[0], long.rejection(batch[0].key()))
		return nil, nil
	case errors.As(err, &be):
		if !w.suspected && w.keeper.suspects(be) {
			w.suspected, w.drift = true, be.Error()
			return [][]*submission{batch}, nil
		}
		w.suspected = false
		if i := culprit(plan, be.Index, len(batch)); i >= 0 {
			w.refuse(batch[i], admission.KernelRejection(batch[i].key(), err))
			return [][]*submission{slices.Delete(batch, i, i+1)}, nil
		}
	case errors.Is(err, kernel.ErrTooLarge), long != nil:
	default:
		w.failures++
		w.drift = err.Error()
		w.log.Warn("outcome of a commit is unknown", "error", err, "updates", len(batch))
		if w.failures < maxFailures {
			return [][]*submission{batch}, nil
		}
		w.failures = 0
	}
	// The error names no update: try fewer.
	if len(batch) == 1 {
		w.refuse(batch[0], admission.KernelRejection(batch[0].key(), err))
		return nil, nil
	}
	half := len(batch) / 2
	return [][]*submission{batch[:half:half], batch[half:]}, nil
}

// suspicious reports whether the kernel may differ from the state: an object to delete is missing (timed
// out or deleted by another process), or an object to add exists or overlaps.
func suspicious(be *kernel.BatchError) bool {
	return errors.Is(be.Errno, syscall.ENOENT) || errors.Is(be.Errno, syscall.EEXIST) || errors.Is(be.Errno, syscall.ENOTEMPTY)
}

// culprit may return -1.
func culprit(plan *desired.Plan, op, updates int) int {
	if op >= 0 && op < len(plan.Origin) && plan.Origin[op] < updates {
		return plan.Origin[op]
	}
	return -1
}

func (w *writer) answer(accepted []*submission, r Result) {
	w.conclude(accepted, r)
	for _, s := range accepted {
		w.lifetimes.committed(s)
	}
	w.adoption.returned()
}

// conclude answers updates of durable fragments only after they are stored.
func (w *writer) conclude(accepted []*submission, r Result) {
	for _, s := range accepted {
		if !s.durable || s.stored {
			s.answer(r)
			continue
		}
		c := changeOf(s, w.cfg.Access.Publisher(s.key().Publisher) != nil, w.cfg.Now())
		c.Done = func(err error) { w.tell.stored(s, r, err) }
		w.dir.Store(c)
	}
}

// Any goroutine may call stored.
func (o *observers) stored(s *submission, r Result, err error) {
	if err != nil {
		rejected := admission.Reject(s.key(), weftv1.Violation_REASON_LIMIT, nil,
			"committed as revision %d and in force, but not stored: %v: weft tries again until it is stored", r.Revision, err)
		o.report(rejected)
		r.Err = rejected
	}
	s.answer(r)
}

// changeOf leaves the messages to be made when stored: updates are immutable.
func changeOf(s *submission, configured bool, now time.Time) statedir.Update {
	c, u := statedir.Update{Fragment: s.key(), Configured: configured}, s.update
	switch {
	case u.Snapshot && (s.withdraws() || u.Lifetime != desired.LifetimeDurable):
	case u.Snapshot:
		c.Snapshot = func() *weftv1.Fragment {
			return message.Fragment(message.Head(u.Fragment.Name, u.Priority, weftv1.Lifetime_LIFETIME_DURABLE, message.ExpireTime(u.Expires)), u.Tables, now)
		}
	default:
		c.Patch = func() *weftv1.Patch { return message.Patch(u, now) }
	}
	return c
}
