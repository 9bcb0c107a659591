package aggregator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// keeper keeps the kernel equal to the state.
type keeper struct {
	*committer
	tell *observers
	// unrepaired has the kernel's errors for tables left out of the last repair.
	unrepaired map[nft.TableID]error
	again      chan struct{}
	// suspectedAt is the time of the last refusal treated as drift.
	suspectedAt time.Time
	foreign     *atomic.Pointer[foreignChanges]
	lapseTimer  *time.Timer
}

// claimInterval is the time between attempts to claim the tables on standby. The kernel does not report the
// end of their owner.
const claimInterval = 100 * time.Millisecond

func (k *keeper) takeOver(ctx context.Context, life *Life) ([]kernel.Table, error) {
	for standing := false; ; {
		dump, err := k.cfg.Kernel.Adopt()
		if err == nil {
			k.metrics.work.WithLabelValues(workDumps).Inc()
			if standing {
				life.enter(false, nil)
			}
			return dump, nil
		}
		var owned *kernel.OwnedError
		if !k.cfg.Standby || !errors.As(err, &owned) && !errors.Is(err, kernel.ErrHeld) {
			return nil, err
		}
		if !standing {
			k.log.Info("standing by", "error", err)
			life.enter(false, ErrStandby)
			standing = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(k.cfg.Retry, claimInterval)):
		}
	}
}

func (k *keeper) drifted(c kernel.Event) {
	switch c.Reason {
	case kernel.Changed, kernel.Deleted:
		k.drift = fmt.Sprintf("table %s was %s by process %d (%s)", c.Table, c.Reason, c.PID, c.Process)
	case kernel.Overrun:
		k.drift = "changes were lost"
	case kernel.Failed:
		k.drift = fmt.Sprintf("watching the kernel failed: %v", c.Err)
	default:
		k.drift = c.Reason.String()
	}
	k.log.Warn("the kernel may differ from what was committed", "reason", k.drift)
}

func (k *keeper) watch(ctx context.Context) (<-chan kernel.Event, error) {
	if k.cfg.Kernel.Owner() && !k.cfg.Kernel.Unprotected() {
		return nil, nil
	}
	changes, err := k.cfg.Kernel.Watch(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch kernel: %w", err)
	}
	return changes, nil
}

// maxRepairs is the number of repairs without a delay while other processes change the kernel.
const maxRepairs = 3

// repair leaves out a table that the kernel refuses to repair (for example because another program uses its
// name), and retries it after Config.Retry.
func (k *keeper) repair() error {
	for attempt := 1; k.drift != ""; attempt++ {
		err := k.tryRepair(attempt == maxRepairs)
		if err == nil || attempt == maxRepairs {
			return err
		}
		k.log.Warn("cannot repair the kernel", "error", err, "attempt", attempt)
	}
	return nil
}

func (k *keeper) tryRepair(last bool) error {
	reason := k.drift
	k.metrics.work.WithLabelValues(workDumps).Inc()
	dump, err := k.cfg.Kernel.Dump()
	if err != nil {
		return fmt.Errorf("reread kernel: %w", err)
	}
	k.forget()
	plan := planner.Diff(k.state, dump)
	refused, err := k.commitTables(plan.Ops, last)
	if err != nil {
		k.state.Rollback()
		return fmt.Errorf("repair kernel after %s: %w", reason, err)
	}
	k.state.Expiries.Advance(k.elapsed())
	planner.Accept(k.state)
	k.drift = ""
	k.purger.Add(planner.Unpurged(k.state, dump), true)
	k.postponeRepair(refused)
	left := 0
	for _, op := range plan.Ops {
		if refused[kernel.TableOf(op)] != nil {
			left++
		}
	}
	if left == len(plan.Ops) {
		return nil
	}
	k.revision++
	counts := message.Counts(plan.Counts)
	if left > 0 {
		counts = nil // of all tables together
	}
	k.foreign.Store(&foreignChanges{repaired: k.cfg.Now(), reason: reason})
	k.noteUnrepaired()
	k.tell.repaired(k.state, k.revision, reason, len(plan.Ops)-left, counts)
	return nil
}

// commitTables commits the ops of a repair, if possible in one batch. It returns refused tables with the
// reasons. After any other error some tables may be repaired, and the kernel must be read again. last
// forbids another read.
func (k *keeper) commitTables(ops []kernel.Op, last bool) (refused map[nft.TableID]error, _ error) {
	refused = map[nft.TableID]error{}
	for len(ops) > 0 {
		_, err := k.cfg.Kernel.Commit(ops)
		if err == nil {
			return refused, nil
		}
		var be *kernel.BatchError
		named := errors.As(err, &be)
		// A suspicious error may mean that the kernel has changed since it was read.
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
				more, err := k.commitTables(slices.DeleteFunc(slices.Clone(ops), others), last)
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

func tablesOf(ops []kernel.Op) []nft.TableID {
	var ids []nft.TableID
	for _, op := range ops {
		if id := kernel.TableOf(op); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// postponeRepair schedules another repair, and reports the newly refused tables.
func (k *keeper) postponeRepair(refused map[nft.TableID]error) {
	fresh := false
	for id, err := range refused {
		if k.unrepaired[id] == nil || k.unrepaired[id].Error() != err.Error() {
			fresh = true
			k.log.Error("cannot repair table", "table", id.String(), "error", err, "retry", k.cfg.Retry)
		}
	}
	k.unrepaired = refused
	k.metrics.unrepaired.Set(float64(len(refused)))
	k.noteUnrepaired()
	if len(refused) == 0 {
		return
	}
	if fresh {
		k.tell.drift(&weftv1.Drift{Reason: k.unrepairedReason()})
	}
	time.AfterFunc(k.cfg.Retry, func() {
		select {
		case k.again <- struct{}{}:
		default:
		}
	})
}

func (k *keeper) tryAgain() {
	if len(k.unrepaired) > 0 && k.drift == "" {
		k.drift = k.unrepairedReason()
	}
}

func (k *keeper) noteUnrepaired() {
	next := foreignChanges{unrepaired: k.unrepairedReason()}
	if last := k.foreign.Load(); last != nil {
		next.repaired, next.reason = last.repaired, last.reason
	}
	k.foreign.Store(&next)
}

func (k *keeper) unrepairedReason() string {
	if len(k.unrepaired) == 0 {
		return ""
	}
	var parts []string
	for _, err := range k.unrepaired {
		parts = append(parts, err.Error())
	}
	slices.Sort(parts)
	return "not repaired yet: " + strings.Join(parts, "; ")
}

// rewatch may fail: then it returns a channel that is closed after Config.Retry, so that rewatch is called
// again.
func (k *keeper) rewatch(ctx context.Context) <-chan kernel.Event {
	if ctx.Err() != nil {
		return nil
	}
	changes, err := k.watch(ctx)
	if err != nil {
		k.log.Error("cannot watch the kernel", "error", err, "retry", k.cfg.Retry)
		closed := make(chan kernel.Event)
		time.AfterFunc(k.cfg.Retry, func() { close(closed) })
		return closed
	}
	k.drift = "kernel notifications were lost"
	return changes
}

// suspects reports whether to compare the kernel with the state before blaming an update. If the kernel
// protects the tables, it is true at most once per Config.Retry: a publisher must not cause a comparison
// with each wrong update.
func (k *keeper) suspects(be *kernel.BatchError) bool {
	if !suspicious(be) || errors.Is(be, kernel.ErrForeignTable) {
		return false
	}
	now := k.cfg.Now()
	if k.cfg.Kernel.Owner() && now.Sub(k.suspectedAt) < k.cfg.Retry {
		return false
	}
	k.suspectedAt = now
	return true
}

func (k *keeper) removeAll() ([]nft.TableID, error) {
	dump, err := k.cfg.Kernel.Dump()
	if err != nil || len(dump) == 0 {
		return nil, err
	}
	tables, ops := make([]nft.TableID, len(dump)), make([]kernel.Op, len(dump))
	for i, t := range dump {
		tables[i], ops[i] = t.ID, kernel.DeleteTable{Table: t.ID}
	}
	if _, err := k.cfg.Kernel.Commit(ops); err != nil {
		// The outcome is unknown: the next step compares.
		k.drift = err.Error()
		return nil, err
	}
	return tables, nil
}

// lapseInterval is the least time between checks for expired elements while idle.
const lapseInterval = 250 * time.Millisecond

// lapsing returns a channel that receives when an element may have expired, or nil.
func (k *keeper) lapsing() <-chan time.Time {
	at, ok := k.state.Expiries.NextExpiry()
	if !ok {
		return nil
	}
	k.lapseTimer.Reset(max(at-k.elapsed(), lapseInterval))
	return k.lapseTimer.C
}

// lapse adds an expired element to the kernel again if another fragment states it with time left.
func (k *keeper) lapse() {
	if !k.forget() {
		return
	}
	if k.drift != "" {
		planner.Accept(k.state)
		return
	}
	plan := planner.Make(k.state)
	if _, err := k.carryOut(plan); err != nil {
		k.drift = err.Error()
		k.log.Warn("cannot add an element that another fragment states too, after it expired", "error", err)
		return
	}
	k.tell.lapsed(plan, k.revision)
}

// forget drops expired elements from the state, and reports whether a commit is needed.
func (k *keeper) forget() (successor bool) {
	expired, successor := k.state.Expire(k.elapsed())
	for _, u := range expired {
		k.tell.statuses.Lapsed(k.state, u.Fragment)
		if f, ok := views.Fragment(k.state, u.Fragment); ok && f.Lifetime == desired.LifetimeDurable {
			k.dir.Store(statedir.Update{Fragment: u.Fragment, Patch: func() *weftv1.Patch { return message.Patch(u, time.Time{}) }, Done: func(error) {}})
		}
	}
	k.flows.After(planner.Lapsed(k.state, expired), nil)
	return successor
}
