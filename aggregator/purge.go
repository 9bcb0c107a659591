package aggregator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
)

const (
	// purgeChunk is how many entries of an affinity map one batch removes, and
	// purgeScan how many are judged before: other commits take their turn between
	// two of either.
	purgeChunk = 4096
	purgeScan  = 4 * purgeChunk
)

// purger removes from affinity maps what packets have put there and no rule makes
// any more. It belongs to the writer's goroutine, as the tables do to its
// connection; reading a map, which takes long, is for a goroutine of its own.
//
// A map is read when a commit took the last rule of a value away, and once more
// after a while: a packet that was on its way through the old rules during the
// commit can have made its entry later than the first look. What goes is judged
// by the rules of the moment, so a look too many, or one that comes late, does no
// harm. Errors are nobody's but ours: the map is looked into again.
//
// Reading is what takes the time, and nearly all of it is the kernel's: it sends every
// entry, as it cannot filter a dump by value, and finds the place where each part of
// 32 KiB goes on by walking from the start of the map. That is 3 us of processor for
// each of 16,384 entries, and 4 us for each of 65,536. Asking for single keys would
// need to know the clients.
//
// Until an entry has gone, new connections of its client follow it. UDP flows that
// begin in this time do so after the commit's own were removed, so all flows are
// compared once more when entries have gone after a commit that made flows stale.
type purger struct {
	kernel Kernel
	// dumper is nil where the kernel cannot read one map alone.
	dumper  SetDumper
	state   *desired.State
	wait    time.Duration
	log     *slog.Logger
	metrics *metrics
	// ask has all UDP flows compared with where they may go.
	ask func()

	// pending are maps to look into, later those to look into when again fires.
	pending, later []purge
	again          chan struct{}
	armed          bool
	// current is the look that is taken; entries is what was read and not judged
	// yet, and found is what is to go.
	current        purge
	entries, found []compile.Element
	// reading is true while reads and results are under way.
	reading bool
	reads   chan desired.Purge
	results chan reading
	// ready is closed.
	ready chan struct{}
}

// reading is what a map holds.
type reading struct {
	entries []compile.Element
	err     error
}

// purge is a look into a map.
type purge struct {
	desired.Purge
	// last is true for the second look.
	last bool
	// flows is true where UDP flows may follow the entries.
	flows bool
	// removed counts what went.
	removed int
}

func newPurger(k Kernel, state *desired.State, wait time.Duration, flows *flusher) *purger {
	p := &purger{
		kernel: k, state: state, wait: wait, log: flows.log, metrics: flows.metrics, ask: flows.ask, again: make(chan struct{}, 1),
		reads: make(chan desired.Purge, 1), results: make(chan reading, 1), ready: make(chan struct{}),
	}
	p.dumper, _ = k.(SetDumper)
	close(p.ready)
	return p
}

// run reads maps until ctx ends.
func (p *purger) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-p.reads:
			var r reading
			r.entries, r.err = p.dumper.DumpSet(m.Table, m.Decl)
			// There is room: one reading is asked for at a time.
			p.results <- r
		}
	}
}

// add has maps looked into; flows says that UDP flows may follow their entries.
func (p *purger) add(maps []desired.Purge, flows bool) {
	if p.dumper == nil {
		return
	}
	for _, m := range maps {
		p.pending = lookInto(p.pending, purge{Purge: m, flows: flows})
	}
}

// lookInto appends a look, unless one into the same map waits already.
func lookInto(queue []purge, next purge) []purge {
	i := slices.IndexFunc(queue, func(o purge) bool { return o.Table == next.Table && o.Decl.Name == next.Decl.Name })
	if i < 0 {
		return append(queue, next)
	}
	queue[i].last, queue[i].flows = queue[i].last && next.last, queue[i].flows || next.flows
	queue[i].Decl = next.Decl
	return queue
}

// busy reports whether there is something to do now.
func (p *purger) busy() bool {
	return len(p.found) > 0 || len(p.entries) > 0 || len(p.pending) > 0 && !p.reading
}

// due returns a channel that is ready while there is something to do.
func (p *purger) due() <-chan struct{} {
	if p.busy() {
		return p.ready
	}
	return nil
}

// step does some of what there is to do: it has a map read, or judges and removes
// entries of the last one.
func (p *purger) step() {
	switch {
	case len(p.found) > 0 || len(p.entries) > 0:
		p.removeSome()
	case len(p.pending) > 0 && !p.reading:
		p.current, p.pending = p.pending[0], p.pending[1:]
		p.reading = true
		p.reads <- p.current.Purge
	}
}

// read takes over what a map holds.
func (p *purger) read(r reading) {
	p.reading = false
	switch {
	case errors.Is(r.err, syscall.ENOENT):
		// Somebody has deleted it: what is wrong then is repaired elsewhere.
	case r.err != nil:
		p.fail(fmt.Errorf("read map: %w", r.err))
	default:
		p.entries = r.entries
		p.removeSome()
	}
}

// removeSome judges entries, where none are left to remove, and removes some.
func (p *purger) removeSome() {
	if len(p.found) == 0 {
		n := min(purgeScan, len(p.entries))
		p.found, p.entries = p.state.Leftovers(p.current.Purge, p.entries[:n]), p.entries[n:]
	}
	chunk := p.found[:min(purgeChunk, len(p.found))]
	p.found = p.found[len(chunk):]
	// Another commit may have brought rules back since they were judged.
	n, err := p.remove(p.state.Leftovers(p.current.Purge, chunk))
	p.current.removed += n
	p.metrics.purged.Add(float64(n))
	if err != nil {
		p.fail(fmt.Errorf("remove entries: %w", err))
		return
	}
	if len(p.found) > 0 || len(p.entries) > 0 {
		return
	}
	p.found, p.entries = nil, nil
	if p.current.removed > 0 {
		p.log.Info("removed affinity entries", "table", p.current.Table.String(), "map", p.current.Decl.Name, "entries", p.current.removed)
		if p.current.flows {
			p.ask()
		}
	}
	if !p.current.last {
		p.postpone(purge{Purge: p.current.Purge, last: true, flows: p.current.flows})
	}
}

// drain does what there is to do at a stop, at most for d.
func (p *purger) drain(d time.Duration) {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	for p.busy() || p.reading {
		select {
		case <-deadline.C:
			return
		case r := <-p.results:
			p.read(r)
		case <-p.due():
			p.step()
		}
	}
}

// remove deletes entries in one batch, or in several where some have run out
// meanwhile and the kernel minds, and returns how many it deleted.
func (p *purger) remove(entries []compile.Element) (int, error) {
	if len(entries) == 0 {
		return 0, nil
	}
	_, err := p.kernel.Commit([]kernel.Op{kernel.DeleteElements{Table: p.current.Table, Set: p.current.Decl, Elements: entries}})
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

// fail gives a look up until later.
func (p *purger) fail(err error) {
	p.metrics.purgeErrors.Inc()
	p.log.Error("affinity entries are not removed", "table", p.current.Table.String(), "map", p.current.Decl.Name, "error", err, "retry", p.wait)
	p.found, p.entries = nil, nil
	p.postpone(purge{Purge: p.current.Purge, last: p.current.last, flows: p.current.flows})
}

// postpone has a map looked into after a while.
func (p *purger) postpone(next purge) {
	p.later = lookInto(p.later, next)
	if p.armed {
		return
	}
	p.armed = true
	time.AfterFunc(p.wait, func() { p.again <- struct{}{} })
}

// retry has those looked into that were postponed.
func (p *purger) retry() {
	p.armed = false
	for _, next := range p.later {
		p.pending = lookInto(p.pending, next)
	}
	p.later = nil
}
