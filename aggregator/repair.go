package aggregator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// maxRepairs is how often a repair is tried without a delay while other
// processes change the kernel.
const maxRepairs = 3

// repair brings the kernel to the committed state, if it may differ. A table that the kernel
// refuses to repair (for example because another program uses its name) is left
// out and tried again after Config.Retry. Other tables and their updates do not
// wait.
func (w *writer) repair() error {
	for attempt := 1; w.drift != ""; attempt++ {
		err := w.tryRepair(attempt == maxRepairs)
		if err == nil || attempt == maxRepairs {
			return err
		}
		w.log.Warn("cannot repair the kernel", "error", err, "attempt", attempt)
	}
	return nil
}

// repairFor is repair. If updates have caused it, their publishers pay for it.
func (w *writer) repairFor(updates []*submission, caused bool) error {
	if !caused || len(updates) == 0 {
		return w.repair()
	}
	defer w.queue.meter(updates, true)()
	return w.repair()
}

// tryRepair makes one attempt; last is true for the last one.
func (w *writer) tryRepair(last bool) error {
	reason := w.drift
	w.metrics.work.WithLabelValues(workDumps).Inc()
	dump, err := w.cfg.Kernel.Dump()
	if err != nil {
		return fmt.Errorf("reread kernel: %w", err)
	}
	w.forget()
	plan := planner.Diff(w.state, dump)
	refused, err := w.commitTables(plan.Ops, last)
	if err != nil {
		w.state.Rollback()
		return fmt.Errorf("repair kernel after %s: %w", reason, err)
	}
	w.state.Expiries.Advance(w.elapsed())
	planner.Accept(w.state)
	w.drift = ""
	w.purger.Add(planner.Unpurged(w.state, dump), true)
	w.postponeRepair(refused)
	left := 0
	for _, op := range plan.Ops {
		if refused[kernel.TableOf(op)] != nil {
			left++
		}
	}
	if left == len(plan.Ops) {
		return nil
	}
	w.revision++
	w.statuses.revision.Store(w.revision)
	counts := countsOf(plan.Counts)
	if left > 0 {
		counts = nil // of all tables together
	}
	w.metrics.repaired(counts)
	w.recordRepair(counts)
	w.foreign.Store(&foreignChanges{repaired: w.cfg.Now(), reason: reason})
	w.noteUnrepaired()
	w.log.Warn("repaired the kernel", "revision", w.revision, "reason", reason, "ops", len(plan.Ops)-left)
	w.hub.publish(&weftv1.WatchResponse{Event: &weftv1.WatchResponse_Drift{Drift: &weftv1.Drift{Reason: reason, Repaired: counts}}})
	w.flows.Reconcile(planner.Live(w.state))
	return nil
}

// commitTables commits the ops of a repair, in one batch if possible. If the
// kernel refuses it, the tables that are to blame are left out and returned
// with the reasons. Any other error is returned: some tables may have been
// repaired, and the kernel must be read again. last is true if it has been read
// often enough.
func (w *writer) commitTables(ops []kernel.Op, last bool) (refused map[nft.TableID]error, _ error) {
	refused = map[nft.TableID]error{}
	for len(ops) > 0 {
		_, err := w.cfg.Kernel.Commit(ops)
		if err == nil {
			return refused, nil
		}
		var be *kernel.BatchError
		named := errors.As(err, &be)
		// A suspicious error of the kernel may mean that it has changed since it was read.
		if !named && !errors.Is(err, kernel.ErrTooLarge) || named && suspicious(be) && be.Err == nil && !last {
			return refused, err
		}
		tables := tablesOf(ops)
		switch {
		case named && be.Op != nil:
			refused[kernel.TableOf(be.Op)] = err
		case len(tables) == 1:
			refused[tables[0]] = err
		default:
			// The error names no table: try each alone.
			for _, id := range tables {
				others := func(op kernel.Op) bool { return kernel.TableOf(op) != id }
				more, err := w.commitTables(slices.DeleteFunc(slices.Clone(ops), others), last)
				maps.Copy(refused, more)
				if err != nil {
					return refused, err
				}
			}
			return refused, nil
		}
		ops = slices.DeleteFunc(slices.Clone(ops), func(op kernel.Op) bool { return refused[kernel.TableOf(op)] != nil })
	}
	return refused, nil
}

// tablesOf returns the tables of ops, in their order.
func tablesOf(ops []kernel.Op) []nft.TableID {
	var ids []nft.TableID
	for _, op := range ops {
		if id := kernel.TableOf(op); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// postponeRepair schedules another repair of the tables that the kernel refuses, and reports
// those that it did not refuse before.
func (w *writer) postponeRepair(refused map[nft.TableID]error) {
	fresh := false
	for id, err := range refused {
		if w.unrepaired[id] == nil || w.unrepaired[id].Error() != err.Error() {
			fresh = true
			w.log.Error("cannot repair table", "table", id.String(), "error", err, "retry", w.cfg.Retry)
		}
	}
	w.unrepaired = refused
	w.metrics.unrepaired.Set(float64(len(refused)))
	w.noteUnrepaired()
	if len(refused) == 0 {
		return
	}
	if fresh {
		w.hub.publish(&weftv1.WatchResponse{Event: &weftv1.WatchResponse_Drift{Drift: &weftv1.Drift{Reason: w.unrepairedReason()}}})
	}
	time.AfterFunc(w.cfg.Retry, func() {
		select {
		case w.again <- struct{}{}:
		default:
		}
	})
}

// tryAgain starts another repair of the tables that were left out.
func (w *writer) tryAgain() {
	if len(w.unrepaired) > 0 && w.drift == "" {
		w.drift = w.unrepairedReason()
	}
}

// noteUnrepaired tells Drift which tables were left out.
func (w *writer) noteUnrepaired() {
	next := foreignChanges{unrepaired: w.unrepairedReason()}
	if last := w.foreign.Load(); last != nil {
		next.repaired, next.reason = last.repaired, last.reason
	}
	w.foreign.Store(&next)
}

// unrepairedReason names the tables that were left out; "" if there are none.
func (w *writer) unrepairedReason() string {
	if len(w.unrepaired) == 0 {
		return ""
	}
	var parts []string
	for _, err := range w.unrepaired {
		parts = append(parts, err.Error())
	}
	slices.Sort(parts)
	return "not repaired yet: " + strings.Join(parts, "; ")
}

// rewatch subscribes to changes again after the watch ended. If that fails, it
// returns a channel that is closed after Config.Retry, which leads here again.
func (w *writer) rewatch(ctx context.Context) <-chan kernel.Change {
	if ctx.Err() != nil {
		return nil
	}
	changes, err := w.watch(ctx)
	if err != nil {
		w.log.Error("cannot watch the kernel", "error", err, "retry", w.cfg.Retry)
		closed := make(chan kernel.Change)
		time.AfterFunc(w.cfg.Retry, func() { close(closed) })
		return closed
	}
	// Changes in between were not seen.
	w.drift = "kernel notifications were lost"
	return changes
}

// suspects reports whether a refusal is a reason to compare the kernel with the
// state before an update is blamed. If the kernel owns its tables, it hardly
// ever is: then a publisher that repeats a wrong update does not cause a
// comparison for each.
func (w *writer) suspects(be *kernel.BatchError) bool {
	if !suspicious(be) || errors.Is(be, kernel.ErrForeignTable) {
		return false
	}
	now := w.cfg.Now()
	if w.OwnsTables() && now.Sub(w.suspectedAt) < w.cfg.Retry {
		return false
	}
	w.suspectedAt = now
	return true
}
