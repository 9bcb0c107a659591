package desired

import (
	"math/bits"
	"slices"

	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/datatype"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// The state knows of every chain what a packet pays there, in nanoseconds (package cost), with
// the chains that it is sent to from there: in the worst case, and what no packet is spared. The
// worst case has all rules of a chain, and for a rule that jumps the most expensive target: a
// packet takes one, and comes back. From a goto it does not come back.
//
// The price of a chain changes only if its rules change, the price of a chain that it leads to, or
// the size of a set that it looks into. Each change marks what it touches as outdated; evaluate
// computes those again, and then what leads to them as long as prices change. It goes up from the
// targets, so that each chain is computed once.

// price is what a packet pays for a chain, in nanoseconds: in the worst case, and at least.
type price struct{ worst, every int }

// add returns the sum of two prices.
func (p price) add(o price) price {
	return price{min(p.worst+o.worst, unbounded), min(p.every+o.every, unbounded)}
}

const (
	// unbounded is the price of a chain that leads back to itself. The kernel refuses such
	// chains if packets can get there.
	unbounded = 1 << 40
	// adoptedTime is what an adopted rule counts: those of real rulesets take about as long.
	adoptedTime = 25
)

// call is one target of a rule.
type call struct {
	// at is the worst price of the rules up to this one, this one included. Calls of one
	// rule have the same.
	at int
	// id is a chain, a set or a map.
	id objectID
	// leaves is true for a goto, and every if no packet is spared the call.
	leaves, every bool
}

// caller is what leads to a part: a chain whose rules name it, or a verdict map whose
// elements do.
type caller struct {
	from part
	// leaves is true for elements with a goto.
	leaves bool
}

// routes counts the elements of a verdict map by the worst price of the chain that they lead to.
type routes struct {
	jumps, gotos map[int]int
	// jump and leave are the greatest prices that the callers know.
	jump, leave int
}

// of returns the counts that a verdict belongs to.
func (l *routes) of(leaves bool) *map[int]int {
	if leaves {
		return &l.gotos
	}
	return &l.jumps
}

// greatest returns the greatest number that is counted, 0 if there is none.
func greatest(counts map[int]int) (most int) {
	for n := range counts {
		most = max(most, n)
	}
	return most
}

// trace finds where the rules of a list send packets.
func (l *ruleList) trace() {
	for _, r := range l.rules {
		v := cost.Packet(r.rule)
		l.price.worst += v.Worst
		if !l.ends {
			l.price.every += v.Every
		}
		for c := range cost.Calls(r.rule) {
			id := chainID(c.Chain)
			if c.Set != "" {
				id = setID(c.Set)
			}
			l.calls = append(l.calls, call{at: l.price.worst, id: id, leaves: c.Goto, every: c.Every && !l.ends})
		}
		l.ends = l.ends || v.Ends
	}
}

// traceAdopted is trace for adopted rules, of which only is known where all of them
// together lead to.
func (l *ruleList) traceAdopted() {
	l.price.worst = adoptedTime * len(l.rules)
	for i, id := range l.refs {
		if id.Kind == kindChain || id.Kind == kindSet {
			l.calls = append(l.calls, call{at: min(adoptedTime*(i+1), l.price.worst), id: id})
		}
	}
}

// lead counts an element of a map that leads to a chain.
func (s *State) lead(o *set, data string, target part, by int) {
	to, ok := target.(*chain)
	if !ok {
		return
	}
	v, err := nftset.ParseVerdictData(data)
	leaves := err == nil && v.Code == datatype.VerdictGoto
	addTo(&to.callers, caller{o, leaves}, by)
	if o.routes == nil {
		o.routes = &routes{}
	}
	addTo(o.routes.of(leaves), to.price.worst, by)
	s.outdate(o)
}

// resize marks a set whose elements change, so that lookups in it may take longer.
func (s *State) resize(o *set) {
	if !o.resized {
		o.resized = true
		s.resized = append(s.resized, o)
	}
}

// lookupTime returns the time of a lookup in nanoseconds. It is rounded up to three binary
// digits, so that it seldom changes.
func (o *set) lookupTime() int {
	if !o.exists() {
		return 0
	}
	n := o.content().Lookup(o.decl())
	unit := 1 << max(bits.Len(uint(n))-3, 0)
	return (n + unit - 1) &^ (unit - 1)
}

// outdate marks a part whose price must be computed again.
func (s *State) outdate(o part) {
	if n := o.base(); !n.outdated {
		n.outdated = true
		s.outdated = append(s.outdated, o)
	}
}

// evaluate computes the prices of everything that is outdated, and of what leads there.
func (s *State) evaluate() {
	for _, o := range s.resized {
		if o.resized = false; o.lookupTime() != o.lookup {
			s.outdate(o)
		}
	}
	clear(s.resized)
	s.resized = s.resized[:0]
	if len(s.outdated) == 0 {
		return
	}
	s.arrange()
	for _, o := range slices.Backward(s.order) {
		n := o.base()
		if !n.outdated {
			continue
		}
		n.outdated = false
		s.work.Objects++
		switch o := o.(type) {
		case *chain:
			s.evaluateChain(o)
		case *set:
			o.evaluate()
		case *object:
		default:
			panic("desired: a part of an unknown kind")
		}
	}
	for _, o := range s.order {
		// A part that leads back to itself is marked again after it was computed.
		o.base().outdated, o.base().loops = false, false
	}
	clear(s.outdated)
	clear(s.order)
	s.outdated, s.order = s.outdated[:0], s.order[:0]
}

// step is a part that arrange enters, or leaves after everything that leads to it.
type step struct {
	part
	leaves bool
}

// arrange puts what is outdated and everything that leads there into order, each part
// after what leads to it. It finds the parts that lead back to themselves.
func (s *State) arrange() {
	s.round++
	for _, o := range s.outdated {
		s.steps = append(s.steps, step{part: o})
		for len(s.steps) > 0 {
			next := s.steps[len(s.steps)-1]
			s.steps = s.steps[:len(s.steps)-1]
			n := next.base()
			switch {
			case next.leaves:
				n.active = false
				s.order = append(s.order, next.part)
			case n.round == s.round && n.active:
				n.loops, n.outdated = true, true
			case n.round == s.round:
			default:
				n.round, n.active = s.round, true
				s.steps = append(s.steps, step{part: next.part, leaves: true})
				for c := range n.callers {
					s.steps = append(s.steps, step{part: c.from})
				}
			}
		}
	}
	clear(s.steps[:cap(s.steps)])
}

func (s *State) evaluateChain(o *chain) {
	was, now := o.price, price{o.worst(), o.every()}
	if o.loops || now.worst == unbounded {
		now = price{unbounded, unbounded}
	}
	if was == now {
		return
	}
	o.price = now
	if o.exists() && o.decl().Base != nil {
		s.paths++
		if now.worst > was.worst || now.every > was.every {
			s.grown = append(s.grown, o)
		}
	}
	for c, n := range o.callers {
		if m, ok := c.from.(*set); ok {
			addTo(m.routes.of(c.leaves), was.worst, -n)
			addTo(m.routes.of(c.leaves), now.worst, n)
		}
		c.from.base().outdated = true
	}
}

func (o *set) evaluate() {
	lookup := o.lookupTime()
	changed := lookup != o.lookup
	o.lookup = lookup
	if o.routes != nil {
		jump, leave := greatest(o.routes.jumps), greatest(o.routes.gotos)
		if o.loops {
			jump, leave = unbounded, unbounded
		}
		changed = changed || jump != o.routes.jump || leave != o.routes.leave
		o.routes.jump, o.routes.leave = jump, leave
	}
	if !changed {
		return
	}
	for c := range o.callers {
		c.from.base().outdated = true
	}
}

// worst returns what a packet pays at most from the start of a chain.
func (o *chain) worst() int {
	run, most := 0, 0
	for _, sh := range o.shares {
		at := 0
		for i := 0; i < len(sh.calls); {
			rule, jump := sh.calls[i].at, 0
			run += rule - at
			at = rule
			for ; i < len(sh.calls) && sh.calls[i].at == rule; i++ {
				lookup, j, leave := o.target(sh.calls[i])
				run += lookup
				jump, most = max(jump, j), max(most, run+leave)
			}
			run += jump
		}
		run += sh.ruleList.price.worst - at
	}
	return min(max(run, most), unbounded)
}

// every returns what no packet is spared from the start of a chain.
func (o *chain) every() (run int) {
	for _, sh := range o.shares {
		run += sh.ruleList.price.every
		for _, c := range sh.calls {
			if !c.every {
				continue
			}
			switch t := o.table.parts[c.id].(type) {
			case *chain:
				run += t.price.every
			case *set:
				run += t.lookup
			}
		}
		if sh.ends {
			break
		}
	}
	return min(run, unbounded)
}

// target returns what a packet pays for a lookup, what for the chain that a call leads to if it
// comes back, and what if it does not.
func (o *chain) target(c call) (lookup, jump, leave int) {
	switch t := o.table.parts[c.id].(type) {
	case *chain:
		if c.leaves {
			return 0, 0, t.price.worst
		}
		return 0, t.price.worst, 0
	case *set:
		if t.routes != nil {
			jump, leave = t.routes.jump, t.routes.leave
		}
		return t.lookup, jump, leave
	}
	return 0, 0, 0
}

// longestPath is the number of chains that a path names: the kernel allows 16.
const longestPath = 16

// path returns the names of the chains on the most expensive way through a chain.
func (o *chain) path() []string {
	names := []string{o.id.Name}
	for len(names) < longestPath {
		var next *chain
		consider := func(c *chain) {
			if next == nil || c.price.worst > next.price.worst || c.price.worst == next.price.worst && c.id.Name < next.id.Name {
				next = c
			}
		}
		for _, sh := range o.shares {
			for _, c := range sh.calls {
				switch t := o.table.parts[c.id].(type) {
				case *chain:
					consider(t)
				case *set:
					if c := t.dearest(); c != nil {
						consider(c)
					}
				}
			}
		}
		if next == nil {
			break
		}
		o = next
		names = append(names, o.id.Name)
	}
	return names
}

// dearest returns the most expensive chain that a map leads to, or nil. It looks at all
// elements, so it is only for messages.
func (o *set) dearest() *chain {
	var most *chain
	for _, sh := range o.shares {
		if !sh.decl.Verdict {
			continue
		}
		for _, e := range sh.elements.All() {
			if c, ok := o.table.parts[leadsTo(sh.decl, e.Data)].(*chain); ok && (most == nil || c.price.worst > most.price.worst) {
				most = c
			}
		}
	}
	return most
}
