package aggregator

import (
	"context"
	"errors"
	"fmt"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// start adopts what the kernel holds: it counts as committed, and stays as it
// is until its publishers have sent snapshots.
// Possible errors: *kernel.OwnedError, the kernel's, ctx's.
func (w *writer) start(ctx context.Context) error {
	dump, err := w.takeOver(ctx)
	if err != nil {
		return err
	}
	// Not before the tables are ours: until then their owner writes it.
	stored, err := w.dir.Load()
	if err != nil {
		return err
	}
	if stored.Killed {
		w.log.Warn("weft did not end by itself the last time: it was killed, for example because of its memory limit, or it crashed")
	}
	w.unconfirmed.Load()
	w.intact = stored.Trusted
	w.state.Advance(w.elapsed())
	w.state.Adopt(dump, stored.Record.Desired)
	w.purger.Add(w.state.Unpurged(dump), true)
	w.revision = max(stored.Revision, uint64(w.cfg.Now().UnixMilli())) //nolint:gosec // after 1970
	w.statuses.adopt(w.state, w.revision, w.cfg.Now())
	for _, f := range w.state.Fragments() {
		w.expirations.set(f.Key, time.Time{}, f.Expires)
	}
	w.scope.Store(w.state.Scope())
	w.metrics.revision.Set(float64(w.revision))
	w.log.Info("adopted tables", "tables", len(dump), "fragments", w.state.Len(), "revision", w.revision)
	if len(dump) > 0 && !stored.Trusted {
		w.log.Warn("tables of an earlier run are there, but no record of their fragments: content that no publisher claims goes from weft's own tables, and stays in others until weft cleanup")
	}
	w.dropStaged()
	if err := w.restore(stored.Fragments); err != nil {
		return fmt.Errorf("restore durable fragments: %w", err)
	}
	w.recordStart()
	w.flows.Resume(stored.Flows, w.state.Live)
	w.returned()
	return nil
}

// claimInterval is the time between attempts to claim the tables while standing
// by. The kernel does not report that their owner has ended, and they are not
// repaired or updated until they are claimed.
const claimInterval = 100 * time.Millisecond

// takeOver claims the tables and reads them. With Config.Standby it waits while
// another process owns them.
func (w *writer) takeOver(ctx context.Context) ([]kernel.Table, error) {
	for standing := false; ; {
		dump, err := w.cfg.Kernel.Adopt()
		if err == nil {
			w.metrics.work.WithLabelValues(workDumps).Inc()
			if standing {
				w.enter(false, nil)
			}
			return dump, nil
		}
		var owned *kernel.OwnedError
		if !w.cfg.Standby || !errors.As(err, &owned) && !errors.Is(err, kernel.ErrHeld) {
			return nil, err
		}
		if !standing {
			w.log.Info("standing by", "error", err)
			w.enter(false, ErrStandby)
			standing = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(w.cfg.Retry, claimInterval)):
		}
	}
}

// returned checks whether the adopted fragments are back. When those with watched flows are,
// and there are watched flows, all flows are compared with their backends: changes during a
// restart are not known, and before the first start another proxy may have led flows to
// backends that have gone since. When all are back and the record was complete, content
// without a fragment was left by a crash and is removed; from the tables of a frontend when it is
// back, because the rules there show all other publishers.
func (w *writer) returned() {
	flows := false
	if w.returning {
		w.returning, flows = w.state.Awaited()
	}
	w.sweep = w.state.HasUnclaimed(w.settled)
	if !w.reconciled && !flows && w.state.WatchesFlows() {
		w.reconciled = true
		w.flows.Reconcile(w.state.Live())
	}
}

// settled reports whether content without a fragment is to be removed from a table.
func (w *writer) settled(t nft.TableID) bool {
	if w.unswept {
		return false
	}
	publisher, own := w.cfg.OwnTables[t.Name]
	return !w.returning && w.intact || own && w.state.Returned(publisher, t)
}

// countsOf converts the counts of a plan.
func countsOf(c desired.Counts) *weftv1.Counts {
	return &weftv1.Counts{
		Tables: uint32(c.Tables), Chains: uint32(c.Chains), Sets: uint32(c.Sets), Objects: uint32(c.Objects), //nolint:gosec // counts
		RulesAdded: uint32(c.RulesAdded), RulesDeleted: uint32(c.RulesDeleted), //nolint:gosec // counts
		ElementsAdded: uint64(c.ElementsAdded), ElementsDeleted: uint64(c.ElementsDeleted), //nolint:gosec // counts
	}
}

// dropStaged removes sets that are in no record, because they were being staged when the
// last run ended. It leaves out sets that a rule refers to, which the kernel keeps.
func (w *writer) dropStaged() {
	if !w.intact {
		return
	}
	for _, at := range w.state.UnclaimedSets() {
		if err := w.state.DropUnclaimedSet(at); err != nil {
			continue
		}
		var be *kernel.BatchError
		switch _, err := w.carryOut(w.state.Plan()); {
		case err == nil:
			w.log.Info("removed a set that was being staged", "table", at.Table.String(), "set", at.Name)
		case !errors.As(err, &be):
			w.drift = err.Error()
		}
	}
}

// dropUnclaimed removes content that a crash between record and commit has
// left.
func (w *writer) dropUnclaimed() error {
	w.sweep = false
	if err := w.state.DropUnclaimed(w.settled); err != nil {
		w.log.Warn("content without a fragment stays", "error", err)
		w.unswept = true
		return nil
	}
	plan := w.state.Plan()
	if _, err := w.carryOut(plan); err != nil {
		w.drift = err.Error()
		return fmt.Errorf("remove content without a fragment: %w", err)
	}
	if len(plan.Ops) == 0 {
		return nil
	}
	w.statuses.revision.Store(w.revision)
	counts := countsOf(plan.Counts)
	w.metrics.committed(counts, w.revision, phases{})
	w.recordRepair(counts)
	w.log.Info("removed content without a fragment", "revision", w.revision, "ops", len(plan.Ops))
	w.flows.After(plan.Stale, &weftv1.WatchResponse{Event: &weftv1.WatchResponse_Commit{Commit: &weftv1.Commit{Revision: w.revision, Changes: counts}}})
	return nil
}
