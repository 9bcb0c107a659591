package aggregator

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/admission"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft/kernel"
)

const (
	// mostStep is the number of elements of the largest transaction of a staging.
	mostStep = 4 * quantum
	// firstStep and minStep are the elements of the first and of the smallest transaction
	// of a staging.
	firstStep = quantum
	minStep   = 16
	// stepTime is the kernel's time that a transaction of a staging should take. It is
	// less than half of the 100 ms that none should exceed, because it is predicted, and
	// estimated from that of the last one. New sets are staged if all of them take longer.
	stepTime = 40 * time.Millisecond
	// maxStagings is how often the staging of an update begins again after a commit with
	// an unknown outcome.
	maxStagings = 3
)

// staging brings the new sets of a large update to the kernel in several transactions,
// before the update is committed. Other commits take their turns in between. Nothing
// refers to the sets until then, so that packets see all of the update or nothing.
type staging struct {
	update *submission
	sets   []*merge.Staged
	// step is the number of elements of the next transaction.
	step int
	// postponed is true if the next step has waited for the commit before it.
	postponed bool
	// suspected is true after a refusal of the kernel was taken for drift.
	suspected bool
	// times is how often it has begun. over is true once the update is to be committed.
	times int
	over  bool
	// elements, transactions, kernel and longest are for the log.
	elements, transactions int
	kernel, longest        time.Duration
}

// stage begins the staging of an update that was taken from the queue, and reports
// whether it did. The update is back in the queue then.
func (w *writer) stage(s *submission) bool {
	if s.ends || s.admitted == nil || s.gone() || s.staging != nil && (s.staging.over || s.staging.times >= maxStagings) {
		return false
	}
	f, ok := views.Fragment(w.state, s.key())
	if done, err := w.checkOwner(s, f, ok); done || err != nil {
		return false
	}
	if !planner.Unstaged(w.state, s.update) {
		return false
	}
	if w.applyUpdate(s) != nil {
		w.state.Rollback()
		return false
	}
	sets := planner.Stage(w.state, s.update, stepTime, maxTransaction-stepTime)
	if len(sets) == 0 {
		return false
	}
	st := &staging{update: s, sets: sets, step: firstStep, times: 1}
	if s.staging != nil {
		st.times += s.staging.times
	}
	s.staging = st
	w.stagings = append(w.stagings, st)
	w.queue.hold(s)
	// After a crash, the next start removes sets that are in no record.
	w.save()
	w.nextStep(0)
	return true
}

// nextStep schedules a step of the first staging.
func (w *writer) nextStep(after time.Duration) {
	w.stageDue = nil
	if len(w.stagings) > 0 {
		w.stageDue = time.After(after)
	}
}

// stageSome makes a step of the first staging, which is the last one after it. The error
// is that of a repair.
func (w *writer) stageSome() error {
	w.stageDue = nil
	if len(w.stagings) == 0 {
		return nil
	}
	if err := w.repair(); err != nil {
		return err
	}
	st := w.stagings[0]
	if wait := w.commitDue.Sub(w.cfg.Now()); wait > 0 && wait < stepTime && !st.postponed {
		// The commit would wait for the step. After it there is time until the next.
		st.postponed = true
		w.nextStep(wait + time.Millisecond)
		return nil
	}
	st.postponed = false
	w.stagings = append(w.stagings[1:], st)
	if st.update.gone() {
		w.endStaging(st)
		w.queue.release(st.update, false)
		w.nextStep(0)
		return nil
	}
	ops := planner.StageOps(w.state, st.sets, st.step, stepTime)
	if len(ops) == 0 {
		w.staged(st)
		return nil
	}
	stats, err := w.cfg.Kernel.Commit(ops)
	if err != nil {
		w.stageFailed(st, err)
		w.nextStep(0)
		return w.repairFor([]*submission{st.update}, st.suspected)
	}
	planner.StageSent(w.state, ops)
	st.count(stats)
	w.nextStep(w.queue.rest(st.update.key().Publisher, stats.Kernel))
	return nil
}

// count adds a transaction, and estimates how many elements the next one can have.
func (st *staging) count(stats kernel.Stats) {
	st.elements += stats.Elements
	st.transactions++
	st.kernel += stats.Kernel
	st.longest = max(st.longest, stats.Kernel)
	fit := int(int64(st.step) * int64(stepTime) / int64(max(stats.Kernel, time.Microsecond)))
	st.step = max(minStep, min(fit, 2*st.step, mostStep))
}

// staged ends a staging that is complete: the update is committed in its turn.
func (w *writer) staged(st *staging) {
	w.log.Info("staged", slog.String("fragment", st.update.key().String()), slog.Int("elements", st.elements),
		slog.Int("transactions", st.transactions), slog.Duration("kernel", st.kernel), slog.Duration("longest", st.longest))
	st.over = true
	w.forgetStaging(st)
	w.queue.release(st.update, false)
	w.nextStep(0)
}

// forgetStaging removes a staging from the list.
func (w *writer) forgetStaging(st *staging) {
	w.stagings = slices.DeleteFunc(w.stagings, func(o *staging) bool { return o == st })
}

// stageFailed decides how to continue after a transaction that was not committed.
func (w *writer) stageFailed(st *staging, err error) {
	var be *kernel.BatchError
	switch {
	case errors.Is(err, kernel.ErrTooLarge) && st.step > minStep:
		st.step = max(minStep, st.step/2)
	case errors.As(err, &be) && !st.suspected && w.suspects(be):
		// The repair keeps what is there as it was sent.
		st.suspected, w.drift = true, be.Error()
	case errors.As(err, &be) || errors.Is(err, kernel.ErrTooLarge):
		w.endStaging(st)
		w.refuse(st.update, admission.KernelRejection(st.update.key(), err))
		w.queue.release(st.update, true)
	default:
		// The repair removes what is there.
		w.drift = err.Error()
		w.log.Warn("outcome of a commit is unknown", "error", err, "updates", 1)
		planner.Unstage(w.state, st.sets)
		w.forgetStaging(st)
		w.queue.release(st.update, false)
	}
}

// endStaging removes from the kernel what is staged of an update that is not committed.
func (w *writer) endStaging(st *staging) {
	w.forgetStaging(st)
	ops := planner.Unstage(w.state, st.sets)
	st.sets = nil
	if len(ops) == 0 {
		return
	}
	if _, err := w.cfg.Kernel.Commit(ops); err != nil {
		w.drift = err.Error()
		w.log.Warn("cannot remove staged sets: the kernel is compared with what was committed", "error", err)
	}
}

// endStagings removes what is left of the stagings of updates that were answered.
func (w *writer) endStagings(batch []*submission) {
	for _, s := range batch {
		if s.staging != nil && s.staging.over && !slices.Contains(w.held, s) {
			w.endStaging(s.staging)
		}
	}
}
