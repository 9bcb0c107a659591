package aggregator

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/flows"
	"github.com/weft-proxy/weft/aggregator/queue"
	"github.com/weft-proxy/weft/aggregator/unconfirmed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// writer and its parts change the state and the kernel, on one goroutine.
type writer struct {
	*committer
	life        *Life
	queue       *queue.Queue[*submission]
	requests    chan func(*writer)
	limiter     *rate.Limiter
	unconfirmed *unconfirmed.Keeper
	merger      *merger
	keeper      *keeper
	adoption    *adoption
	lifetimes   *lifetimes
	stagings    *stagings
	tell        *observers

	// held are updates to commit after a repair, before the queue's.
	held []*submission
	// failures counts consecutive commits with an unknown outcome.
	failures int
	// suspected is true after a refusal of the running batch was treated as drift.
	suspected bool
	cleanedUp bool
}

func newWriter(a *Aggregator) *writer {
	cfg, state := &a.cfg, merge.New()
	state.FixedFlags = cfg.Kernel.Owner()
	c := &committer{
		cfg: cfg, log: a.log, state: state, began: cfg.Now(), flows: a.flows,
		purger: flows.NewPurger(flows.PurgerConfig{
			Kernel: cfg.Kernel, State: state, Delay: cfg.Retry, Removed: a.flows.Ask, Log: a.log, Metrics: a.metrics.flows,
		}),
		record: record{dir: a.dir, metrics: a.metrics, unsaved: &a.unsaved, resave: stoppedTimer(), saved: math.MaxUint64},
	}
	l := newLifetimes(state, cfg.Now)
	k := &keeper{committer: c, tell: a.tell, foreign: &a.foreign, again: make(chan struct{}, 1), lapseTimer: stoppedTimer()}
	return &writer{
		committer: c, life: a.Life, queue: a.queue, requests: a.requests, limiter: rate.NewLimiter(cfg.Rate, cfg.Burst),
		unconfirmed: a.unconfirmed, keeper: k, lifetimes: l, tell: a.tell,
		merger:   &merger{access: cfg.Access, state: state, dir: a.dir, statuses: a.statuses, unconfirmed: a.unconfirmed, lifetimes: l},
		adoption: &adoption{committer: c, tell: a.tell, returning: true},
		stagings: &stagings{committer: c, keeper: k, queue: a.queue},
	}
}

func (w *writer) loop(ctx context.Context, changes <-chan kernel.Event) error {
	always := make(chan struct{})
	close(always)
	// timer fires when a token is due, or a repair is to be retried.
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	grace := time.NewTimer(w.cfg.SessionGrace)
	defer grace.Stop()
	for armed, due := false, false; ; {
		// Under load there is always more to commit: serve the other channels in between.
		var again chan struct{}
		if due || !armed && w.work() {
			var delay time.Duration
			if now := w.cfg.Now(); !due {
				delay = w.limiter.ReserveN(now, 1).DelayFrom(now)
			}
			if delay <= 0 {
				delay = w.attempt()
			}
			if armed, due = delay > 0, false; armed {
				timer.Reset(delay)
				w.stagings.commitDue = w.cfg.Now().Add(delay)
			} else {
				again = always
			}
		}
		select {
		case <-ctx.Done():
			w.finish()
			return nil
		case <-again:
		case <-w.queue.Nudge():
		case f := <-w.requests:
			w.keeper.lapse()
			if f(w); w.cleanedUp {
				return ErrCleanedUp
			}
		case <-grace.C:
			w.lifetimes.abandonAdopted()
		case <-w.flows.Overdue():
			w.flows.Reconcile(planner.Live(w.state))
		case p := <-w.flows.Local():
			w.flows.Add(planner.Answering(w.state, p))
		case <-w.keeper.again:
			w.keeper.tryAgain()
		case <-w.resave.C:
			if w.unsaved.Load() != nil {
				w.save()
			}
		case <-w.lifetimes.due(w.cfg.Now()):
			w.lifetimes.expire()
		case <-w.keeper.lapsing():
			w.keeper.lapse()
		case <-w.stagings.due:
			if err := w.stageSome(); err != nil {
				w.log.Error("cannot reconcile the kernel", "error", err, "retry", w.cfg.Retry)
				w.stagings.next(w.cfg.Retry)
			}
		case <-w.purger.Due():
			w.purger.Step()
		case f := <-w.purger.Events():
			f()
		case c, ok := <-changes:
			if !ok {
				changes = w.keeper.rewatch(ctx)
				continue
			}
			w.keeper.drifted(c)
		case <-timer.C:
			due = true
		}
	}
}

// attempt returns the wait before the next attempt, or 0.
func (w *writer) attempt() (delay time.Duration) {
	if err := w.step(); err != nil {
		w.log.Error("cannot reconcile the kernel", "error", err, "retry", w.cfg.Retry)
		return w.cfg.Retry
	}
	return 0
}

func (w *writer) work() bool {
	return w.drift != "" || w.adoption.sweep || w.lifetimes.retry || len(w.held) > 0 || w.queue.Ready()
}

// step repairs drift and then commits the next updates. After an error call it again: updates are kept.
func (w *writer) step() error {
	defer w.tell.count(w.state)
	if err := w.keeper.repair(); err != nil {
		return err
	}
	if w.adoption.sweep {
		if err := w.adoption.dropUnclaimed(); err != nil {
			return err
		}
	}
	batch := w.batch()
	left, err := w.commitGroups([][]*submission{batch})
	w.held = slices.Concat(left...)
	w.stagings.endOf(batch, w.held)
	return err
}

func (w *writer) commitGroups(groups [][]*submission) (left [][]*submission, err error) {
	for err == nil && len(groups) > 0 {
		var more [][]*submission
		more, err = w.commit(groups[0])
		groups = append(more, groups[1:]...)
	}
	return groups, err
}

// cost is the weight of an update for the queue: the elements and rules added or replaced. Content that is
// slow for the kernel counts by its time, in elements of a set without ranges.
func (w *writer) cost(s *submission) int {
	n := 1
	if s.admitted != nil {
		if s.weight == 0 {
			s.weight = 1 + max(s.admitted.Cost(), int(planner.UpdateTime(w.state, s.update)*queue.Quantum/queue.QuantumTime))
		}
		n = s.weight
	}
	if s.staging != nil && s.staging.over {
		// The kernel has the staged elements.
		n = max(1, 1+s.admitted.Cost()-s.staging.elements)
	}
	var gone []desired.Key
	switch {
	case s.ends:
		gone = views.SessionFragments(w.state, s.session.id)
	case s.update.Snapshot:
		gone = []desired.Key{s.key()}
	}
	for _, key := range gone {
		st := w.tell.statuses.Get(key)
		n += int(st.GetRules()) + int(st.GetElements()) //nolint:gosec // counts
	}
	return n
}

func (w *writer) batch() []*submission {
	batch := w.held
	w.held = nil
	if len(batch) == 0 {
		batch = w.queue.Take(w.cost)
		for len(batch) == 1 && w.stage(batch[0]) {
			// While it is staged, other updates can be committed.
			batch = w.queue.Take(w.cost)
		}
	}
	if len(batch) == 0 && !w.lifetimes.retry {
		return nil
	}
	w.lifetimes.retry = false
	// This batch may withdraw a fragment that prevented a withdrawal.
	return append(batch, w.lifetimes.withdrawals(w.lifetimes.stillAbandoned(), nil)...)
}

// stage reports whether it stages an update. If so, the update is back in the queue.
func (w *writer) stage(s *submission) bool {
	if s.ends || s.admitted == nil || s.gone() || s.staging != nil && (s.staging.over || s.staging.times >= maxStagings) {
		return false
	}
	f, ok := views.Fragment(w.state, s.key())
	if done, err := w.merger.check(s, f, ok); done || err != nil {
		return false
	}
	if !planner.Unstaged(w.state, s.update) {
		return false
	}
	if w.merger.apply(s) != nil {
		w.state.Rollback()
		return false
	}
	return w.stagings.begin(s)
}

// stageSome returns only errors of a repair.
func (w *writer) stageSome() error {
	failed, rejected, err := w.stagings.step()
	if failed == nil {
		return err
	}
	if rejected != nil {
		w.refuse(failed.update, rejected)
		w.queue.Release(failed.update, true)
	}
	return w.repairFor([]*submission{failed.update}, failed.suspected)
}

// repairFor charges the publishers of updates that caused the repair.
func (w *writer) repairFor(updates []*submission, caused bool) error {
	if !caused || len(updates) == 0 {
		return w.keeper.repair()
	}
	defer w.queue.Meter(updates, true)()
	return w.keeper.repair()
}

func (w *writer) finish() {
	deadline := w.cfg.Now().Add(w.cfg.Drain)
	w.queue.EndPauses()
	for (w.work() || len(w.stagings.all) > 0) && w.cfg.Now().Before(deadline) {
		if err := cmp.Or(w.step(), w.stageSome()); err != nil {
			w.log.Error("updates were lost at stop", "error", err)
			break
		}
	}
	for len(w.stagings.all) > 0 {
		w.stagings.end(w.stagings.all[0])
	}
	for _, s := range w.held {
		s.answer(Result{Err: ErrStopped})
	}
	w.purger.Drain(deadline.Sub(w.cfg.Now()))
	w.held = nil
	w.save()
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// Cleanup removes all of weft's tables in one transaction and returns them. Then Run ends with
// ErrCleanedUp. Durable fragments stay stored. On an error the tables stay, and Run goes on.
//
// Possible errors: ErrStandby, ErrStopped, the kernel's, ctx's.
func (a *Aggregator) Cleanup(ctx context.Context) (tables []nft.TableID, err error) {
	if asked := a.ask(ctx, func(w *writer) { tables, err = w.cleanup() }); asked != nil {
		return nil, asked
	}
	return tables, err
}

func (w *writer) cleanup() ([]nft.TableID, error) {
	tables, err := w.keeper.removeAll()
	if err != nil {
		w.log.Error("cannot remove all tables", "error", err)
		return nil, fmt.Errorf("remove all tables: %w", err)
	}
	w.log.Warn("removed all tables on request, stopping", "tables", len(tables))
	for _, s := range w.held {
		s.answer(Result{Err: ErrStopped})
	}
	w.held = nil
	if err := w.dir.RemoveRecord(); err != nil {
		w.log.Error("cannot remove the record", "error", err)
	}
	w.unconfirmed.CleanedUp()
	w.cleanedUp = true
	return tables, nil
}
