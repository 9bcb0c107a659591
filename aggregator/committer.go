package aggregator

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/flows"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// committer owns the merged state and the kernel. Only the writer's goroutine uses it.
type committer struct {
	cfg      *Config
	log      *slog.Logger
	state    *merge.State
	revision uint64
	// drift is why the kernel must be compared with the state before the next commit, or "".
	drift  string
	began  time.Time
	flows  *flows.Flusher
	purger *flows.Purger
	record
}

// record stores the shares of fragments (desired.Record) for the next start.
type record struct {
	dir     *statedir.Dir
	metrics *metrics
	unsaved *atomic.Pointer[error]
	resave  *time.Timer
	// saved is the version of the last written record, at first math.MaxUint64.
	saved uint64
	// intact is true if the record of the last run was complete.
	intact bool
}

// elapsed is the time since the start, by a clock that does not jump.
func (c *committer) elapsed() time.Duration { return c.cfg.Now().Sub(c.began) }

func (c *committer) carryOut(plan *desired.Plan) (stats kernel.Stats, err error) {
	if len(plan.Ops) > 0 {
		c.flows.Before(plan.Deserted)
		if stats, err = c.transact(plan); err != nil {
			c.state.Rollback()
			c.flows.After(nil, nil)
			return stats, err
		}
		c.revision++
	}
	c.state.Expiries.Advance(c.elapsed())
	planner.Accept(c.state)
	c.purger.Add(plan.Purges, len(plan.Stale) > 0)
	return stats, nil
}

// transact commits the ops ahead first, and undoes them if the others are refused.
func (c *committer) transact(plan *desired.Plan) (stats kernel.Stats, err error) {
	if plan.Ahead == 0 {
		return c.cfg.Kernel.Commit(plan.Ops)
	}
	if stats, err = c.cfg.Kernel.Commit(plan.Ops[:plan.Ahead]); err != nil {
		return stats, err
	}
	rest, err := c.cfg.Kernel.Commit(plan.Ops[plan.Ahead:])
	if err == nil {
		return stats.Add(rest), nil
	}
	be := (*kernel.BatchError)(nil)
	if !errors.As(err, &be) && !errors.Is(err, kernel.ErrTooLarge) {
		c.drift = err.Error()
		return stats, err
	}
	if be != nil && be.Index >= 0 {
		be.Index += plan.Ahead
	}
	undo, failed := inverse(plan.Ops[:plan.Ahead])
	if failed == nil {
		_, failed = c.cfg.Kernel.Commit(undo)
	}
	if failed != nil {
		c.drift = failed.Error()
	}
	return stats, err
}

// inverse requires that all added objects are new.
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

// resaveAfter is the wait, in Config.Retry, before the record is stored again without a commit.
const resaveAfter = 10

// save stores a changed record before the commit that it describes (see desired.Record). For an unchanged
// record it only reserves the revision. A failure does not stop the commit: the next commit or the loop
// retries. Each reason is logged once.
func (c *committer) save() {
	version, next := c.state.RecordVersion(), c.revision+1
	var err error
	if c.saved == version {
		err = c.dir.ReserveRevision(next)
	} else {
		partial := !c.intact && c.state.HasUnclaimed(func(nft.TableID) bool { return true })
		if err = c.dir.SaveRecord(statedir.Record{Partial: partial, Desired: views.Record(c.state)}, next); err == nil {
			c.metrics.work.WithLabelValues(workRecords).Inc()
			c.saved = version
			c.state.Recorded()
		}
	}
	if err != nil {
		if last := c.unsaved.Swap(&err); last == nil || (*last).Error() != err.Error() {
			c.log.Error("cannot save the record", "error", err)
		}
		c.resave.Reset(resaveAfter * c.cfg.Retry)
		return
	}
	c.unsaved.Store(nil)
}
