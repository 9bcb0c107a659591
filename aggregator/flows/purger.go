package flows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

const (
	// purgeChunk is the number of affinity entries removed by one transaction, purgeScan the number checked
	// at a time.
	purgeChunk = 4096
	purgeScan  = 4 * purgeChunk
)

// Kernel is the part of nft/kernel used by a Purger.
type Kernel interface {
	Commit(ops []kernel.Op) (kernel.Stats, error)
	// DumpSet runs concurrently with other calls.
	DumpSet(table nft.TableID, set *set.Set) ([]set.Element, error)
}

// Purger removes affinity map entries if no rule makes them any more: the rule with their value is gone, or
// the value has left the set looked up by the rule.
//
// A map is read after a commit has removed the last rule of a value, or the value from the set. It is read
// again after a delay: a packet in the old rules during the commit can make its entry after the first reading.
// Entries are compared with the present rules, so extra or late readings are harmless.
//
// The kernel cannot filter a dump by value, and single keys cannot be requested, because the clients are
// unknown.
//
// Until an entry is removed, new connections of the client follow it. So all flows are compared again if
// entries were removed after a commit with stale flows.
type Purger struct {
	cfg PurgerConfig

	pending, later []purge
	armed          bool
	// entries are to be checked, found ones to be removed.
	current        purge
	entries, found []set.Element
	// reading is true while Run reads a map.
	reading bool
	reads   chan desired.Purge
	// events delivers work to the owner.
	events chan func()
	// ready is closed.
	ready chan struct{}
}

// PurgerConfig describes a Purger.
type PurgerConfig struct {
	Kernel Kernel
	State  *merge.State
	// Delay is the time until the second reading of a map, and until a retry.
	Delay time.Duration
	// Removed is called after removing entries that UDP flows may have followed.
	Removed func()
	Log     *slog.Logger
	Metrics *Metrics
}

type purge struct {
	desired.Purge
	// last is true for the second reading.
	last  bool
	flows bool
	// removed counts entries, also those of a reading that failed later.
	removed int
}

// NewPurger returns a Purger without work.
func NewPurger(cfg PurgerConfig) *Purger {
	p := &Purger{cfg: cfg, reads: make(chan desired.Purge, 1), events: make(chan func(), 2), ready: make(chan struct{})}
	close(p.ready)
	return p
}

// Run reads maps until ctx ends.
func (p *Purger) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-p.reads:
			entries, err := p.cfg.Kernel.DumpSet(m.Table, m.Decl)
			// There is room, because one map is read at a time.
			p.events <- func() { p.read(entries, err) }
		}
	}
}

// Add schedules the purge of maps. flows is true if UDP flows may follow the entries.
func (p *Purger) Add(maps []desired.Purge, flows bool) {
	for _, m := range maps {
		p.pending = schedule(p.pending, purge{Purge: m, flows: flows})
	}
}

// schedule joins purges of the same map.
func schedule(queue []purge, next purge) []purge {
	i := slices.IndexFunc(queue, func(o purge) bool { return o.Table == next.Table && o.Decl.Name == next.Decl.Name })
	if i < 0 {
		return append(queue, next)
	}
	queue[i].last, queue[i].flows = queue[i].last && next.last, queue[i].flows || next.flows
	queue[i].removed += next.removed
	queue[i].Decl = next.Decl
	return queue
}

// Busy reports whether Step has something to do.
func (p *Purger) Busy() bool {
	return len(p.found) > 0 || len(p.entries) > 0 || len(p.pending) > 0 && !p.reading
}

// Due returns a channel that is ready while Busy.
func (p *Purger) Due() <-chan struct{} {
	if p.Busy() {
		return p.ready
	}
	return nil
}

// Events delivers functions that the owner must call.
func (p *Purger) Events() <-chan func() { return p.events }

// Step asks Run to read a map, or checks and removes some entries.
func (p *Purger) Step() {
	switch {
	case len(p.found) > 0 || len(p.entries) > 0:
		p.removeSome()
	case len(p.pending) > 0 && !p.reading:
		p.current, p.pending = p.pending[0], p.pending[1:]
		p.reading = true
		p.reads <- p.current.Purge
	}
}

func (p *Purger) read(entries []set.Element, err error) {
	p.reading = false
	switch {
	case errors.Is(err, syscall.ENOENT):
		// Another process has deleted the map. The writer repairs it.
		p.report()
	case err != nil:
		p.fail(fmt.Errorf("read map: %w", err))
	default:
		p.entries = entries
		p.removeSome()
	}
}

// removeSome checks more entries if found is empty.
func (p *Purger) removeSome() {
	if len(p.found) == 0 {
		n := min(purgeScan, len(p.entries))
		p.found, p.entries = planner.Leftovers(p.cfg.State, p.current.Purge, p.entries[:n]), p.entries[n:]
	}
	chunk := p.found[:min(purgeChunk, len(p.found))]
	p.found = p.found[len(chunk):]
	// Another commit may have restored rules since the check.
	n, err := p.remove(planner.Leftovers(p.cfg.State, p.current.Purge, chunk))
	p.current.removed += n
	p.cfg.Metrics.Purged.Add(float64(n))
	if err != nil {
		p.fail(fmt.Errorf("remove entries: %w", err))
		return
	}
	if len(p.found) > 0 || len(p.entries) > 0 {
		return
	}
	p.found, p.entries = nil, nil
	p.report()
	if !p.current.last {
		p.postpone(purge{Purge: p.current.Purge, last: true, flows: p.current.flows})
	}
}

func (p *Purger) report() {
	if p.current.removed == 0 {
		return
	}
	p.cfg.Log.Info("removed affinity entries", "table", p.current.Table.String(), "map", p.current.Decl.Name, "entries", p.current.removed)
	if p.current.flows {
		p.cfg.Removed()
	}
}

// Drain does the remaining work at a stop, for at most d.
func (p *Purger) Drain(d time.Duration) {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	for p.Busy() || p.reading {
		select {
		case <-deadline.C:
			return
		case f := <-p.events:
			f()
		case <-p.Due():
			p.Step()
		}
	}
}

// remove returns the number of deleted entries. It uses one transaction, unless entries have timed out.
func (p *Purger) remove(entries []set.Element) (int, error) {
	if len(entries) == 0 {
		return 0, nil
	}
	_, err := p.cfg.Kernel.Commit([]kernel.Op{kernel.DeleteElements{Table: p.current.Table, Set: p.current.Decl, Elements: entries}})
	var be *kernel.BatchError
	switch {
	case err == nil:
		return len(entries), nil
	case !errors.As(err, &be) || !errors.Is(be.Errno, syscall.ENOENT):
		return 0, err
	case len(entries) == 1:
		return 0, nil
	}
	half := len(entries) / 2
	first, err := p.remove(entries[:half])
	if err != nil {
		return first, err
	}
	second, err := p.remove(entries[half:])
	return first + second, err
}

func (p *Purger) fail(err error) {
	p.cfg.Metrics.PurgeErrors.Inc()
	p.cfg.Log.Error("cannot remove affinity entries", "table", p.current.Table.String(), "map", p.current.Decl.Name, "error", err, "retry", p.cfg.Delay)
	p.found, p.entries = nil, nil
	p.postpone(purge{Purge: p.current.Purge, last: p.current.last, flows: p.current.flows, removed: p.current.removed})
}

func (p *Purger) postpone(next purge) {
	p.later = schedule(p.later, next)
	if p.armed {
		return
	}
	p.armed = true
	time.AfterFunc(p.cfg.Delay, func() { p.events <- p.retry })
}

func (p *Purger) retry() {
	p.armed = false
	for _, next := range p.later {
		p.pending = schedule(p.pending, next)
	}
	p.later = nil
}
