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
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// writer owns the merged state and the kernel. Only the goroutine of Run may use
// its fields, except those of the Aggregator.
type writer struct {
	*Aggregator

	state    *merge.State
	limiter  *rate.Limiter
	revision uint64
	// drift is why the kernel must be compared with the state before the next
	// commit, or "".
	drift string
	// unrepaired has the tables that the last repair left out, and the kernel's
	// errors. again triggers the next repair.
	unrepaired map[nft.TableID]error
	again      chan struct{}
	// resave fires when a record that could not be stored is to be tried again.
	resave *time.Timer
	// suspectedAt is when a refusal was last taken for drift.
	suspectedAt time.Time
	// held are updates that wait for a repair, before those in the queue.
	held []*submission
	// saved is the version of the record that was written last. None is greater than any.
	saved uint64
	// counted is the work that the metrics have counted.
	counted desired.Work
	// failures counts commits in a row whose outcome was unknown.
	failures int
	// suspected is true after the kernel's refusal of the running batch was taken
	// for drift.
	suspected bool
	// intact is true if the record of the last run was found and complete.
	intact bool
	// returning is true until all adopted fragments are back. reconciled is true
	// after all flows were compared, once there are fragments with watched flows, and those
	// of before are back.
	returning, reconciled bool
	// sessions are those that have sent updates and have not ended.
	sessions map[uint64]*Session
	// abandoned are fragments of sessions that have ended, and fragments that have
	// expired, which could not be withdrawn yet. The value is true if that was
	// reported, or need not be. retryAbandoned is true if that is to be tried without waiting
	// for another update.
	abandoned      map[desired.Key]bool
	retryAbandoned bool
	// expirations says when fragments expire.
	expirations *expirations
	// cleanedUp is true after all tables were removed on request.
	cleanedUp bool
	// sweep is true if content without a fragment is to be removed, unswept if that failed.
	sweep, unswept bool
	// stagings are the updates that are being staged, in the order of their turns; stageDue
	// fires when the first one makes a step. commitDue is the time of the next commit, in
	// the past if none waits.
	stagings  []*staging
	stageDue  <-chan time.Time
	commitDue time.Time
	// began is when the writer was made, and lapseTimer fires when an element may have expired.
	began      time.Time
	lapseTimer *time.Timer
	// grant is granted.
	grant desired.Grant
	// logged is when a commit last had a line in the log, and unlogged how many had none since.
	logged   time.Time
	unlogged int
	// purger removes entries that packets have put into affinity maps.
	purger *flows.Purger
}

func newWriter(a *Aggregator) *writer {
	w := &writer{
		Aggregator: a, state: merge.New(), limiter: rate.NewLimiter(a.cfg.Rate, a.cfg.Burst), returning: true, again: make(chan struct{}, 1), resave: stoppedTimer(),
		saved: math.MaxUint64, sessions: make(map[uint64]*Session), abandoned: make(map[desired.Key]bool), expirations: &expirations{},
		began: a.cfg.Now(), lapseTimer: stoppedTimer(),
	}
	w.state.SetFixedFlags(w.OwnsTables())
	w.grant = a.granted
	w.purger = flows.NewPurger(flows.PurgerConfig{
		Kernel: a.cfg.Kernel, State: w.state, Delay: a.cfg.Retry, Removed: a.flows.Ask, Log: a.log, Metrics: a.metrics.flows,
	})
	return w
}

// loop commits until ctx ends, and then pending updates. It returns nil, or
// ErrCleanedUp after Cleanup.
func (w *writer) loop(ctx context.Context, changes <-chan kernel.Change) error {
	always := make(chan struct{})
	close(always)
	// timer fires when a token is due, or a repair is to be tried again.
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	grace := time.NewTimer(w.cfg.SessionGrace)
	defer grace.Stop()
	for armed, due := false, false; ; {
		// Under load there is always more to commit: others have their say in
		// between.
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
				w.commitDue = w.cfg.Now().Add(delay)
			} else {
				again = always
			}
		}
		select {
		case <-ctx.Done():
			w.finish()
			return nil
		case <-again:
		case <-w.queue.nudge:
		case f := <-w.requests:
			w.lapse()
			if f(w); w.cleanedUp {
				return ErrCleanedUp
			}
		case <-grace.C:
			w.abandonAdopted()
		case <-w.flows.Overdue():
			w.flows.Reconcile(planner.Live(w.state))
		case p := <-w.flows.Local():
			w.flows.Add(planner.Answering(w.state, p))
		case <-w.again:
			w.tryAgain()
		case <-w.resave.C:
			if w.unsaved.Load() != nil {
				w.save()
			}
		case <-w.expirations.due(w.cfg.Now()):
			w.expire()
		case <-w.lapsing():
			w.lapse()
		case <-w.stageDue:
			if err := w.stageSome(); err != nil {
				w.log.Error("cannot reconcile the kernel", "error", err, "retry", w.cfg.Retry)
				w.nextStep(w.cfg.Retry)
			}
		case <-w.purger.Due():
			w.purger.Step()
		case f := <-w.purger.Events():
			f()
		case c, ok := <-changes:
			if !ok {
				changes = w.rewatch(ctx)
				continue
			}
			w.drifted(c)
		case <-timer.C:
			due = true
		}
	}
}

// resaveAfter is after how many times Config.Retry a record is stored again, if no commit does
// that before.
const resaveAfter = 10

// drifted records a change by another process.
func (w *writer) drifted(c kernel.Change) {
	switch c.Reason {
	case kernel.Changed, kernel.Deleted:
		w.drift = fmt.Sprintf("table %s was %s by process %d (%s)", c.Table, c.Reason, c.PID, c.Process)
	case kernel.Overrun:
		w.drift = "changes were lost"
	case kernel.Failed:
		w.drift = fmt.Sprintf("watching the kernel failed: %v", c.Err)
	default:
		w.drift = c.Reason.String()
	}
	w.log.Warn("the kernel may differ from what was committed", "reason", w.drift)
}

// watch subscribes to changes by other processes, if there can be any.
func (w *writer) watch(ctx context.Context) (<-chan kernel.Change, error) {
	k := w.cfg.Kernel
	if k.Owner() && !k.Unprotected() {
		return nil, nil
	}
	changes, err := k.Watch(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch kernel: %w", err)
	}
	return changes, nil
}

// attempt makes a step. It returns how long to wait before the next attempt, or
// 0.
func (w *writer) attempt() (delay time.Duration) {
	if err := w.step(); err != nil {
		w.log.Error("cannot reconcile the kernel", "error", err, "retry", w.cfg.Retry)
		return w.cfg.Retry
	}
	return 0
}

// work reports whether there is something to do.
func (w *writer) work() bool {
	return w.drift != "" || w.sweep || w.retryAbandoned || len(w.held) > 0 || w.queue.ready()
}

// step repairs drift and then commits the next updates. After an error the
// kernel may differ from the state, and no update is lost: call step again
// later.
func (w *writer) step() error {
	defer w.count()
	if err := w.repair(); err != nil {
		return err
	}
	if w.sweep {
		if err := w.dropUnclaimed(); err != nil {
			return err
		}
	}
	batch := w.batch()
	left, err := w.commitGroups([][]*submission{batch})
	w.held = slices.Concat(left...)
	w.endStagings(batch)
	return err
}

// commitGroups commits groups of updates, each by itself. On an error it returns
// those that are left.
func (w *writer) commitGroups(groups [][]*submission) (left [][]*submission, err error) {
	for err == nil && len(groups) > 0 {
		var more [][]*submission
		more, err = w.commit(groups[0])
		groups = append(more, groups[1:]...)
	}
	return groups, err
}

// count adds the work of the state to the metrics.
func (w *writer) count() {
	now := w.state.Work()
	w.metrics.worked(w.counted, now)
	w.counted = now
}

// cost returns the number of elements and rules that an update adds or replaces, or of elements of a
// set without ranges for which the kernel takes as long.
func (w *writer) cost(s *submission) int {
	n := 1
	if s.admitted != nil {
		if s.weight == 0 {
			s.weight = 1 + max(s.admitted.Cost(), int(planner.UpdateTime(w.state, s.update)*quantum/quantumTime))
		}
		n = s.weight
	}
	if s.staging != nil && s.staging.over {
		// The kernel has the elements.
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
		st := w.statuses.get(key)
		n += int(st.GetRules()) + int(st.GetElements()) //nolint:gosec // counts
	}
	return n
}

// batch returns the updates of the next commit: those that were held, or else
// the next ones in the queue.
func (w *writer) batch() []*submission {
	batch := w.held
	w.held = nil
	if len(batch) == 0 {
		batch = w.queue.take(w.cost)
		for len(batch) == 1 && w.stage(batch[0]) {
			// The others need not wait for the next commit.
			batch = w.queue.take(w.cost)
		}
	}
	if len(batch) == 0 && !w.retryAbandoned {
		return nil
	}
	w.retryAbandoned = false
	// A fragment that prevented a withdrawal may be withdrawn by this batch.
	return append(batch, w.withdrawals(w.stillAbandoned(), nil)...)
}

// finish commits pending updates at a graceful stop, within the drain time.
func (w *writer) finish() {
	deadline := w.cfg.Now().Add(w.cfg.Drain)
	w.queue.endPauses()
	for (w.work() || len(w.stagings) > 0) && w.cfg.Now().Before(deadline) {
		if err := cmp.Or(w.step(), w.stageSome()); err != nil {
			w.log.Error("updates were lost at stop", "error", err)
			break
		}
	}
	for len(w.stagings) > 0 {
		w.endStaging(w.stagings[0])
	}
	for _, s := range w.held {
		s.answer(Result{Err: ErrStopped})
	}
	w.purger.Drain(deadline.Sub(w.cfg.Now()))
	w.held = nil
	w.save()
}

// stoppedTimer returns a timer that fires after a Reset.
func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// save stores the record if it may have changed, before the commit that it
// describes (see desired.Record). A failure does not stop the commit: the next one tries again,
// and so does the loop after resaveAfter times Config.Retry. It is logged once for each reason.
func (w *writer) save() {
	version, next := w.state.RecordVersion(), w.revision+1
	var err error
	if w.saved == version {
		err = w.dir.ReserveRevision(next)
	} else {
		partial := !w.intact && w.state.HasUnclaimed(func(nft.TableID) bool { return true })
		if err = w.dir.SaveRecord(statedir.Record{Partial: partial, Desired: views.Record(w.state)}, next); err == nil {
			w.metrics.work.WithLabelValues(workRecords).Inc()
			w.saved = version
			w.state.Recorded()
		}
	}
	if err != nil {
		if last := w.unsaved.Swap(&err); last == nil || (*last).Error() != err.Error() {
			w.log.Error("cannot save the record", "error", err)
		}
		w.resave.Reset(resaveAfter * w.cfg.Retry)
		return
	}
	w.unsaved.Store(nil)
}
