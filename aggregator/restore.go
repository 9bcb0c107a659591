package aggregator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// start adopts the kernel's tables, and commits the durable fragments. Other content stays unchanged until
// its publisher has sent a snapshot. Possible errors: *kernel.OwnedError, statedir.Load's, the kernel's,
// ctx's.
func (w *writer) start(ctx context.Context) error {
	dump, err := w.keeper.takeOver(ctx, w.life)
	if err != nil {
		return err
	}
	// Until the tables are ours, their owner writes the state directory.
	stored, err := w.dir.Load()
	if err != nil {
		return err
	}
	if stored.Killed {
		w.log.Warn("weft did not end by itself the last time: it was killed, for example because of its memory limit, or it crashed")
	}
	w.unconfirmed.Load()
	w.flows.Load(stored.Flows)
	w.intact = stored.Trusted
	w.state.Expiries.Advance(w.elapsed())
	adopt.Dump(w.state, dump, stored.Record.Desired)
	w.purger.Add(planner.Unpurged(w.state, dump), true)
	w.revision = max(stored.Revision, uint64(w.cfg.Now().UnixMilli())) //nolint:gosec // after 1970
	w.tell.statuses.Adopt(w.state, w.revision, w.cfg.Now())
	for _, f := range views.Fragments(w.state) {
		w.lifetimes.set(f.Key, time.Time{}, f.Expires)
	}
	w.tell.scope.Store(w.state.Scope())
	w.metrics.revision.Set(float64(w.revision))
	w.log.Info("adopted tables", "tables", len(dump), "fragments", len(w.state.Fragments), "revision", w.revision)
	if len(dump) > 0 && !stored.Trusted {
		w.log.Warn("tables of an earlier run are there, but no record of their fragments: content that no publisher claims goes from weft's own tables, and stays in others until weft cleanup")
	}
	w.adoption.dropStaged()
	if err := w.restore(stored.Fragments); err != nil {
		return fmt.Errorf("restore durable fragments: %w", err)
	}
	w.tell.started(w.state, w.revision)
	w.flows.Resume(func() []conntrack.Destination { return planner.Live(w.state) })
	w.adoption.returned()
	return nil
}

// restore commits the unexpired durable fragments in one commit. It retries a refused fragment after
// others, which may declare objects it needs.
func (w *writer) restore(stored []statedir.Fragment) error {
	began := w.cfg.Now()
	// The state directory may need the list again, to create its database.
	stored = slices.DeleteFunc(slices.Clone(stored), func(f statedir.Fragment) bool {
		at := f.Content.GetExpireTime()
		if at == nil || at.AsTime().After(began) {
			return false
		}
		w.log.Info("durable fragment has expired", "fragment", f.Key.String(), "expire_time", at.AsTime())
		w.dir.Store(statedir.Update{Fragment: f.Key})
		return true
	})
	refusals := make(map[desired.Key]error)
	orphans, denied := w.withoutPublisher(stored), make(map[desired.Key]*weftv1.FragmentStatus)
	batch := w.withdrawOrphans(orphans)
	stored = slices.DeleteFunc(stored, func(f statedir.Fragment) bool { return orphans[f.Key] != nil })
	for before := -1; len(stored) != before; {
		scope := w.state.Scope()
		before = len(stored)
		stored = slices.DeleteFunc(stored, func(f statedir.Fragment) bool {
			s, err := w.applyStored(f, scope, began)
			if err == nil {
				batch = append(batch, s)
			}
			refusals[f.Key] = err
			return err == nil
		})
	}
	for _, f := range stored {
		if rejected := (*RejectedError)(nil); errors.As(refusals[f.Key], &rejected) && len(rejected.Refusals) > 0 {
			denied[f.Key] = orphan(f, rejected.Violations)
			continue
		}
		w.log.Error("durable fragment is refused", "fragment", f.Key.String(), "error", refusals[f.Key])
	}
	batch = append(batch, w.withdrawOrphans(denied)...)
	maps.Copy(orphans, denied)
	groups, err := w.commitApplied(batch, began)
	if err != nil {
		return err
	}
	if _, err := w.commitGroups(groups); err != nil {
		return err
	}
	for _, s := range batch {
		if r := <-s.result; r.Err != nil {
			w.log.Error("durable fragment is refused", "fragment", s.key().String(), "error", r.Err)
		}
	}
	w.tell.statuses.Orphaned(orphans)
	return nil
}

func (w *writer) applyStored(f statedir.Fragment, scope admission.Scope, now time.Time) (*submission, error) {
	if err := admission.CheckKey(f.Key); err != nil {
		return nil, err
	}
	adm := admission.NewSnapshot(admission.Config{Access: w.cfg.Access, Stored: true, Durable: true, Now: func() time.Time { return now }}, f.Key, scope)
	adm.AddFragment(f.Content)
	u, err := adm.Finish()
	if err != nil {
		return nil, err
	}
	s := &submission{update: u, admitted: adm, stored: true, result: make(chan Result, 1)}
	if len(w.apply([]*submission{s})) == 0 {
		return nil, (<-s.result).Err
	}
	return s, nil
}

// An orphan is a durable fragment that the configuration does not allow at the start. It is listed but not
// in force until a later start allows it, or it is sent again or deleted.

// withoutPublisher ignores publishers never configured: administrators may publish under such names.
func (w *writer) withoutPublisher(stored []statedir.Fragment) map[desired.Key]*weftv1.FragmentStatus {
	orphans := make(map[desired.Key]*weftv1.FragmentStatus)
	if w.cfg.Access == nil {
		return orphans
	}
	where := "there is no configuration"
	if file := w.cfg.Access.Policy().File; file != "" {
		where = "it is not in " + file
	}
	for _, f := range stored {
		if publisher := f.Key.Publisher; f.Configured && w.cfg.Access.Publisher(publisher) == nil {
			orphans[f.Key] = orphan(f, []*weftv1.Violation{{
				Reason:  weftv1.Violation_REASON_PERMISSION,
				Message: fmt.Sprintf("publisher %s has gone: %s: configure it and restart weft, or delete the fragment", publisher, where),
			}})
		}
	}
	return orphans
}

func orphan(f statedir.Fragment, violations []*weftv1.Violation) *weftv1.FragmentStatus {
	return &weftv1.FragmentStatus{
		Fragment: message.Name(f.Key), Priority: f.Content.GetPriority(), Lifetime: weftv1.Lifetime_LIFETIME_DURABLE, ExpireTime: f.Content.GetExpireTime(),
		State: weftv1.FragmentStatus_STATE_ORPHANED, Violations: violations,
	}
}

// withdrawOrphans withdraws orphans still in the kernel, as after a restart without a reboot. They stay
// stored.
func (w *writer) withdrawOrphans(orphans map[desired.Key]*weftv1.FragmentStatus) []*submission {
	var withdrawals []*submission
	for _, key := range slices.SortedFunc(maps.Keys(orphans), desired.Key.Compare) {
		w.log.Warn("durable fragment is orphaned: it is not in force", "fragment", key.String(), "reason", orphans[key].GetViolations()[0].GetMessage())
		withdrawals = append(withdrawals, &submission{update: &desired.Update{Fragment: key, Snapshot: true}, stored: true, result: make(chan Result, 1)})
	}
	return w.apply(withdrawals)
}

// adoption tracks the content of the last run until its publishers are back.
type adoption struct {
	*committer
	tell       *observers
	returning  bool
	reconciled bool
	// sweep is true if content without a fragment is to be removed, unswept if that failed.
	sweep, unswept bool
}

// returned compares all flows with their backends once the fragments with watched flows are back: changes
// during a restart are unknown, and before the first start another proxy may have used backends now gone.
//
// Once all are back and the record was complete, remaining content without a fragment comes from a crash
// and is removed. In Config.OwnTables it is removed once the frontend is back.
func (a *adoption) returned() {
	flows := false
	if a.returning {
		a.returning, flows = views.Awaited(a.state)
	}
	a.sweep = a.state.HasUnclaimed(a.settled)
	if !a.reconciled && !flows && len(a.state.Watched) > 0 {
		a.reconciled = true
		a.flows.Reconcile(planner.Live(a.state))
	}
}

func (a *adoption) settled(t nft.TableID) bool {
	if a.unswept {
		return false
	}
	publisher, own := a.cfg.OwnTables[t.Name]
	return !a.returning && a.intact || own && a.state.Returned(publisher, t)
}

// dropStaged removes sets missing from the record: their staging ended with the last run. The kernel keeps
// sets with a referring rule.
func (a *adoption) dropStaged() {
	if !a.intact {
		return
	}
	for _, at := range a.state.UnclaimedSets() {
		if err := a.state.DropUnclaimedSet(at); err != nil {
			continue
		}
		var be *kernel.BatchError
		switch _, err := a.carryOut(planner.Make(a.state)); {
		case err == nil:
			a.log.Info("removed a set that was being staged", "table", at.Table.String(), "set", at.Name)
		case !errors.As(err, &be):
			a.drift = err.Error()
		}
	}
}

// dropUnclaimed removes content left by a crash between record and commit.
func (a *adoption) dropUnclaimed() error {
	a.sweep = false
	if err := a.state.DropUnclaimed(a.settled); err != nil {
		a.log.Warn("content without a fragment stays", "error", err)
		a.unswept = true
		return nil
	}
	plan := planner.Make(a.state)
	if _, err := a.carryOut(plan); err != nil {
		a.drift = err.Error()
		return fmt.Errorf("remove content without a fragment: %w", err)
	}
	if len(plan.Ops) == 0 {
		return nil
	}
	a.tell.removed(&outcome{revision: a.revision, plan: plan, counts: message.Counts(plan.Counts)})
	return nil
}
