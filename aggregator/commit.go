package aggregator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft/kernel"
)

// maxFailures is how often a batch may end with an unknown outcome before its
// updates are tried one by one.
const maxFailures = 3

// commit applies a batch and commits it. If the kernel refuses it, commit
// returns the groups in which the updates must be tried again. An update that
// is to blame has been answered and is in none of them. On an error the kernel
// may differ from the state, and the groups have all updates that were not
// answered.
func (w *writer) commit(batch []*submission) (again [][]*submission, err error) {
	if err := w.repairFor(batch, w.suspected); err != nil {
		return [][]*submission{batch}, err
	}
	if len(batch) == 0 {
		return nil, nil
	}
	w.lapse()
	began, charge := w.cfg.Now(), w.queue.meter(batch, false)
	again, err = w.commitApplied(w.apply(batch), began)
	charge()
	return again, err
}

// commitApplied commits the updates that have been applied since began. It
// returns what commit does.
func (w *writer) commitApplied(accepted []*submission, began time.Time) (again [][]*submission, err error) {
	if len(accepted) == 0 {
		w.state.Rollback()
		return nil, nil
	}
	plan := planner.Make(w.state)
	if err := w.bound(accepted, plan); err != nil {
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
	if len(plan.Ops) == 0 {
		w.note(accepted, false)
		w.record(accepted, nil, stats, phases{})
		w.answer(accepted, Result{Revision: w.revision})
		return nil, nil
	}
	w.failures, w.suspected = 0, false
	counts, phases := countsOf(plan.Counts), w.phases(accepted, began, built)
	// The commit is counted before it is acknowledged.
	w.metrics.committed(counts, w.revision, phases)
	w.note(accepted, true)
	// A reader that asks after the answer finds the entry.
	w.record(accepted, counts, stats, phases)
	w.answer(accepted, Result{Revision: w.revision, Changes: counts})
	if structural(plan) {
		w.logged = time.Time{}
		w.inspector.Wake()
	}
	w.announce(accepted, plan, counts, stats, phases)
	if w.purger.Busy() {
		w.purger.Step()
	}
	return nil, nil
}

// carryOut commits what a plan has to change and accepts the state, or rolls it back.
func (w *writer) carryOut(plan *desired.Plan) (stats kernel.Stats, err error) {
	if len(plan.Ops) > 0 {
		w.flows.Before(plan.Deserted)
		if stats, err = w.transact(plan); err != nil {
			w.state.Rollback()
			return stats, err
		}
		w.revision++
	}
	w.state.Expiries.Advance(w.elapsed())
	planner.Accept(w.state)
	w.purger.Add(plan.Purges, len(plan.Stale) > 0)
	return stats, nil
}

// transact commits the ops of a plan, in two transactions if it has ops that come ahead. If
// only the second one fails, a third one removes what the first one has added.
func (w *writer) transact(plan *desired.Plan) (stats kernel.Stats, err error) {
	if plan.Ahead == 0 {
		return w.cfg.Kernel.Commit(plan.Ops)
	}
	if stats, err = w.cfg.Kernel.Commit(plan.Ops[:plan.Ahead]); err != nil {
		return stats, err
	}
	rest, err := w.cfg.Kernel.Commit(plan.Ops[plan.Ahead:])
	if err == nil {
		return stats.Add(rest), nil
	}
	be := (*kernel.BatchError)(nil)
	if !errors.As(err, &be) && !errors.Is(err, kernel.ErrTooLarge) {
		w.drift = err.Error()
		return stats, err
	}
	if be != nil && be.Index >= 0 {
		be.Index += plan.Ahead
	}
	undo, failed := inverse(plan.Ops[:plan.Ahead])
	if failed == nil {
		_, failed = w.cfg.Kernel.Commit(undo)
	}
	if failed != nil {
		w.drift = failed.Error()
	}
	return stats, err
}

// inverse returns the ops that remove what ops have added, of which nothing was there before.
func inverse(ops []kernel.Op) (undo []kernel.Op, err error) {
	for _, op := range slices.Backward(ops) {
		switch op := op.(type) {
		case kernel.AddRule:
			undo = append(undo, kernel.DeleteRule{Table: op.Table, Chain: op.Chain, Handle: op.Handle})
		case kernel.AddElements:
			undo = append(undo, kernel.FlushSet{Table: op.Table, Name: op.Set.Name})
		case kernel.AddChain:
			undo = append(undo, kernel.DeleteChain{Table: op.Table, Name: op.Chain.Name})
		case kernel.AddSet:
			undo = append(undo, kernel.DeleteSet{Table: op.Table, Name: op.Set.Name})
		case kernel.AddObject:
			undo = append(undo, kernel.DeleteObject{Table: op.Table, Ref: op.Object.Ref()})
		case kernel.AddFlowtable:
			undo = append(undo, kernel.DeleteFlowtable{Table: op.Table, Name: op.Flowtable.Name})
		default:
			return nil, fmt.Errorf("op %T is ahead of others and cannot be undone", op)
		}
	}
	return undo, nil
}

// apply applies updates to the state and answers those that it rejects. It
// returns the others, in the order of desired.Plan.Origin.
func (w *writer) apply(batch []*submission) []*submission {
	accepted := make([]*submission, 0, len(batch))
	for i := 0; i < len(batch); i++ {
		s := batch[i]
		switch {
		case s.ends:
			batch = slices.Insert(batch, i+1, w.end(s.session)...)
			s.answer(Result{Revision: w.revision})
			continue
		case s.gone():
			w.dropGone(s)
			continue
		}
		f, ok := views.Fragment(w.state, s.key())
		if done, err := w.checkOwner(s, f, ok); err != nil {
			w.refuse(s, err)
			continue
		} else if done {
			s.answer(Result{Revision: w.revision})
			continue
		}
		s.existed, s.owner, s.before, s.expired = ok, f.Session, f.Expires, time.Time{}
		if s.leaving && w.expired(f) {
			s.expired = f.Expires
		}
		s.durable = f.Lifetime == desired.LifetimeDurable || s.update.Snapshot && (s.update.Lifetime == desired.LifetimeDurable || w.isOrphan(s.key()))
		if w.refusable(s) {
			s.leaveTime, _ = planner.LeaveTime(w.state, s.key())
		}
		if err := w.applyUpdate(s); err != nil {
			w.refuse(s, err)
			continue
		}
		accepted = append(accepted, s)
	}
	return accepted
}

// checkOwner checks who may change a fragment, which is f if ok is true. Done
// means that there is nothing to do.
func (w *writer) checkOwner(s *submission, f desired.Status, ok bool) (done bool, err error) {
	if c := s.session; c != nil && !s.leaving {
		if !c.ended {
			w.sessions[c.id] = c
		}
		if s.update.Snapshot {
			delete(c.expired, s.key().Name)
		}
		if s.withdraws() {
			// Later patches have no snapshot to build on, valid or not.
			delete(c.broken, s.key().Name)
		}
	}
	if err := w.storable(s, f); err != nil {
		return false, err
	}
	if at, waits := w.unconfirmed.Waits(s.key()); waits && !s.reserved && !s.leaving {
		return false, admission.Reject(s.key(), weftv1.Violation_REASON_UNCONFIRMED, nil,
			"it waits for a confirmation until %s: confirm it or take it back first (weft confirm)", at.Format(time.TimeOnly))
	}
	switch {
	case s.leaving:
		return !ok || !w.isAbandoned(f), nil
	case s.withdraws() && !ok && w.isOrphan(s.key()):
		return false, nil
	case s.withdraws() && !ok:
		if s.mustExist {
			return false, fmt.Errorf("%w: %s", ErrNotFound, s.key())
		}
		return true, nil
	case s.update.Snapshot && !ok && w.state.Len() >= admission.MaxFragments:
		return false, admission.Reject(s.key(), weftv1.Violation_REASON_LIMIT, nil, "there are %d fragments, and no more are accepted: delete some", admission.MaxFragments)
	case s.update.Snapshot:
		return false, nil
	case !ok && s.session.expired[s.key().Name]:
		return false, hasExpired(s.key())
	case !ok:
		return false, snapshotNeeded(s.key())
	case f.Session != s.session.id:
		if owner := w.sessions[f.Session]; owner != nil {
			return false, admission.Reject(s.key(), weftv1.Violation_REASON_TAKEN_OVER, nil,
				"another stream of publisher %s has sent a snapshot of this fragment since (process %d)", s.key().Publisher, owner.pid)
		}
		return false, snapshotNeeded(s.key())
	case s.session.broken[s.key().Name] > f.Serial:
		return false, snapshotNeeded(s.key())
	default:
		return false, nil
	}
}

// refuse answers an update that cannot be committed.
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
		first = !w.abandoned[s.key()]
		w.abandoned[s.key()] = true
	}
	// A stored fragment is tried several times: only the last outcome counts.
	var rejected *RejectedError
	if errors.As(err, &rejected) && first && !s.stored {
		w.report(rejected)
	}
	s.answer(Result{Err: err})
	if s.session != nil && !exists {
		s.session.gone(s.key().Name, false)
	}
}

// report counts, logs and publishes a rejection. The log has one line a minute for each
// publisher and reason.
func (a *Aggregator) report(r *RejectedError) {
	a.statuses.rejected(r)
	a.roster.rejected(r)
	publisher, reason := a.metrics.rejected(r)
	if skipped, ok := a.refusals.Log(publisher, reason, a.cfg.Now()); ok {
		args := []any{"fragment", r.Fragment.String(), "violations", len(r.Violations), "error", r.Error()}
		if skipped > 0 {
			args = append(args, "not_logged", skipped)
		}
		a.log.Info("update rejected", args...)
	}
	a.hub.publish(&weftv1.WatchResponse{Event: &weftv1.WatchResponse_Rejection{Rejection: &weftv1.Rejection{
		Fragment: nameOf(r.Fragment), Violations: r.Violations,
	}}})
}

// rejection converts a rejection by the state.
func rejection(r *desired.Rejection) *RejectedError {
	out := &RejectedError{Fragment: r.Fragment}
	for _, v := range r.Violations {
		out.Violations = append(out.Violations, admission.Shorten(&weftv1.Violation{
			Object: admission.PlaceName(v.Object), Message: v.Message, Reason: weftv1.Violation_Reason(v.Reason),
		}))
		if refusal := (*access.Refusal)(nil); errors.As(v.Err, &refusal) {
			out.Refusals = append(out.Refusals, refusal)
		}
	}
	return out
}

// refused decides how to continue after a batch that was not committed. The
// state has been rolled back.
func (w *writer) refused(batch []*submission, plan *desired.Plan, err error) (again [][]*submission, _ error) {
	var be *kernel.BatchError
	var long *longError
	switch {
	case errors.As(err, &long) && len(batch) == 1:
		w.refuse(batch[0], long.rejection(batch[0].key()))
		return nil, nil
	case errors.As(err, &be):
		if !w.suspected && w.suspects(be) {
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

// suspicious reports whether a refusal may mean that the kernel differs from
// the state: an object to delete does not exist (because it timed out, or
// another process deleted it), or an object to add exists.
func suspicious(be *kernel.BatchError) bool {
	return errors.Is(be.Errno, syscall.ENOENT) || errors.Is(be.Errno, syscall.EEXIST) || errors.Is(be.Errno, syscall.ENOTEMPTY)
}

// culprit returns the update that an op comes from, or -1.
func culprit(plan *desired.Plan, op, updates int) int {
	if op >= 0 && op < len(plan.Origin) && plan.Origin[op] < updates {
		return plan.Origin[op]
	}
	return -1
}

// note updates everything that readers see after updates were accepted. Changed is true if
// there was a commit.
func (w *writer) note(accepted []*submission, changed bool) {
	w.statuses.committed(accepted, w.state, w.revision, w.cfg.Now(), changed)
	w.metrics.shadowed.Set(float64(w.state.Shadowed()))
	w.roster.committed(accepted)
	w.scope.Store(w.state.Scope())
	w.count()
	w.expiring(accepted)
}

// answer answers accepted updates.
func (w *writer) answer(accepted []*submission, r Result) {
	w.conclude(accepted, r)
	w.noteGone(accepted)
	w.returned()
}

// noteGone tells the sessions of withdrawn fragments that they are gone.
func (w *writer) noteGone(accepted []*submission) {
	for _, s := range accepted {
		if c := w.sessions[s.owner]; c != nil && s.withdraws() {
			c.gone(s.key().Name, !s.expired.IsZero())
		}
	}
}

// logInterval is how often a commit that changes nothing but elements has a line in the log: a line costs a tenth of it.
const logInterval = 10 * time.Second

// announce reports a commit to the log, to watchers and to the flows.
func (w *writer) announce(accepted []*submission, plan *desired.Plan, counts *weftv1.Counts, stats kernel.Stats, p phases) {
	keys := make([]desired.Key, 0, len(accepted))
	for _, s := range accepted {
		keys = append(keys, s.key())
	}
	slices.SortFunc(keys, desired.Key.Compare)
	keys = slices.Compact(keys)
	if now := w.cfg.Now(); now.Sub(w.logged) < logInterval {
		w.unlogged++
	} else {
		w.log.LogAttrs(context.Background(), slog.LevelInfo, "committed",
			slog.Uint64("revision", w.revision), slog.Int("fragments", len(keys)), slog.Int("updates", len(accepted)),
			slog.Int("ops", len(plan.Ops)), slog.Int("bytes", stats.Bytes),
			slog.Duration("wait", p.wait), slog.Duration("build", p.build), slog.Duration("kernel", p.kernel),
			slog.Int("rules_added", plan.Counts.RulesAdded), slog.Int("rules_deleted", plan.Counts.RulesDeleted),
			slog.Int("elements_added", plan.Counts.ElementsAdded), slog.Int("elements_deleted", plan.Counts.ElementsDeleted),
			slog.Int("not_logged", w.unlogged))
		w.logged, w.unlogged = now, 0
	}
	var event *weftv1.WatchResponse
	if w.hub.watched() {
		event = &weftv1.WatchResponse{Event: &weftv1.WatchResponse_Commit{Commit: &weftv1.Commit{
			Revision: w.revision, Fragments: namesOf(keys), Changes: counts,
			Wait: durationpb.New(p.wait), Build: durationpb.New(p.build), Kernel: durationpb.New(p.kernel),
		}}}
	}
	w.flows.After(plan.Stale, event)
	if plan.Rerouted {
		w.flows.Ask()
	}
}
