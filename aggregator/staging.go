package aggregator

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/admission"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/queue"
	"github.com/weft-proxy/weft/nft/kernel"
)

const (
	// mostStep bounds the elements of a transaction.
	mostStep  = 4 * queue.Quantum
	firstStep = queue.Quantum
	minStep   = 16
	// stepTime is the target for the kernel's time of a transaction: less than half of maxTransaction,
	// because it is predicted. New sets are staged if together they take longer.
	stepTime = 40 * time.Millisecond
	// maxStagings bounds the beginnings of a staging: an unknown outcome ends it.
	maxStagings = 3
)

// staging adds the new sets of a large update in several transactions before its commit.
type staging struct {
	update *submission
	sets   []*merge.Staged
	// step is the number of elements of the next transaction.
	step int
	// postponed is true if the next step has waited for the commit before it.
	postponed bool
	suspected bool
	// times counts the beginnings. over is true once the update is ready for its commit.
	times                  int
	over                   bool
	elements, transactions int
	kernel, longest        time.Duration
}

// stagings belongs to the writer's goroutine.
type stagings struct {
	*committer
	keeper *keeper
	queue  *queue.Queue[*submission]
	// all is in the order of turns.
	all []*staging
	due <-chan time.Time
	// commitDue is the time of the next commit, in the past if no update waits.
	commitDue time.Time
}

// begin undoes the applied update, and reports whether it stages the update. If so, the update is back in
// the queue.
func (sg *stagings) begin(s *submission) bool {
	sets := planner.Stage(sg.state, s.update, stepTime, maxTransaction-stepTime)
	if len(sets) == 0 {
		return false
	}
	st := &staging{update: s, sets: sets, step: firstStep, times: 1}
	if s.staging != nil {
		st.times += s.staging.times
	}
	s.staging = st
	sg.all = append(sg.all, st)
	sg.queue.Hold(s)
	// After a crash, the next start removes sets missing from the record.
	sg.save()
	sg.next(0)
	return true
}

func (sg *stagings) next(after time.Duration) {
	sg.due = nil
	if len(sg.all) > 0 {
		sg.due = time.After(after)
	}
}

// step makes a step of the first staging and moves it to the end. If the kernel refuses the step, step
// returns the staging as failed. A rejected error ends the staging; err is the error of a repair.
func (sg *stagings) step() (failed *staging, rejected, err error) {
	sg.due = nil
	if len(sg.all) == 0 {
		return nil, nil, nil
	}
	if err := sg.keeper.repair(); err != nil {
		return nil, nil, err
	}
	st := sg.all[0]
	if wait := sg.commitDue.Sub(sg.cfg.Now()); wait > 0 && wait < stepTime && !st.postponed {
		// The commit would wait for the step. After the commit there is time until the next one.
		st.postponed = true
		sg.next(wait + time.Millisecond)
		return nil, nil, nil
	}
	st.postponed = false
	sg.all = append(sg.all[1:], st)
	if st.update.gone() {
		sg.end(st)
		sg.queue.Release(st.update, false)
		sg.next(0)
		return nil, nil, nil
	}
	ops := planner.StageOps(sg.state, st.sets, st.step, stepTime)
	if len(ops) == 0 {
		sg.complete(st)
		return nil, nil, nil
	}
	stats, err := sg.cfg.Kernel.Commit(ops)
	if err != nil {
		rejected = sg.fail(st, err)
		sg.next(0)
		return st, rejected, nil
	}
	planner.StageSent(sg.state, ops)
	st.count(stats)
	sg.next(sg.queue.Rest(st.update.Publisher(), stats.Kernel, stepTime))
	return nil, nil, nil
}

// count estimates how many elements the next transaction can have.
func (st *staging) count(stats kernel.Stats) {
	st.elements += stats.Elements
	st.transactions++
	st.kernel += stats.Kernel
	st.longest = max(st.longest, stats.Kernel)
	fit := int(int64(st.step) * int64(stepTime) / int64(max(stats.Kernel, time.Microsecond)))
	st.step = max(minStep, min(fit, 2*st.step, mostStep))
}

func (sg *stagings) complete(st *staging) {
	sg.log.Info("staged", slog.String("fragment", st.update.key().String()), slog.Int("elements", st.elements),
		slog.Int("transactions", st.transactions), slog.Duration("kernel", st.kernel), slog.Duration("longest", st.longest))
	st.over = true
	sg.forget(st)
	sg.queue.Release(st.update, false)
	sg.next(0)
}

func (sg *stagings) forget(st *staging) {
	sg.all = slices.DeleteFunc(sg.all, func(o *staging) bool { return o == st })
}

// fail returns the error that ends the staging, or nil.
func (sg *stagings) fail(st *staging, err error) (rejected error) {
	var be *kernel.BatchError
	switch {
	case errors.Is(err, kernel.ErrTooLarge) && st.step > minStep:
		st.step = max(minStep, st.step/2)
	case errors.As(err, &be) && !st.suspected && sg.keeper.suspects(be):
		// The repair keeps the staged sets as sent.
		st.suspected, sg.drift = true, be.Error()
	case errors.As(err, &be) || errors.Is(err, kernel.ErrTooLarge):
		sg.end(st)
		return admission.KernelRejection(st.update.key(), err)
	default:
		// The repair removes the staged sets.
		sg.drift = err.Error()
		sg.log.Warn("outcome of a commit is unknown", "error", err, "updates", 1)
		planner.Unstage(sg.state, st.sets)
		sg.forget(st)
		sg.queue.Release(st.update, false)
	}
	return nil
}

// end removes staged sets that are not in force.
func (sg *stagings) end(st *staging) {
	sg.forget(st)
	ops := planner.Unstage(sg.state, st.sets)
	st.sets = nil
	if len(ops) == 0 {
		return
	}
	if _, err := sg.cfg.Kernel.Commit(ops); err != nil {
		sg.drift = err.Error()
		sg.log.Warn("cannot remove staged sets: the kernel is compared with what was committed", "error", err)
	}
}

// endOf ends the stagings of answered updates: the batch without held.
func (sg *stagings) endOf(batch, held []*submission) {
	for _, s := range batch {
		if s.staging != nil && s.staging.over && !slices.Contains(held, s) {
			sg.end(s.staging)
		}
	}
}
