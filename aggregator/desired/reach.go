package desired

import (
	"slices"

	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/datatype"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// The state knows of every chain how many rules a packet visits there in the worst case,
// with the chains that it is sent to from there. It counts all rules of a chain, and for a
// rule that jumps the most expensive target: a packet takes one, and comes back. From a
// goto it does not come back.
//
// The number of a chain changes only if its rules change or the number of a chain that it
// leads to. Each change marks what it touches as outdated; evaluate computes those
// again, and then what leads to them as long as numbers change. It goes up from the
// targets, so that each chain is computed once.

// unbounded is the number of a chain that leads back to itself. The kernel refuses such
// chains if packets can get there.
const unbounded = 1 << 40

// call is one target of a rule.
type call struct {
	// at is as how many rules those up to this one count, this one included. Calls of one
	// rule have the same.
	at int
	// id is a chain or a verdict map.
	id objectID
	// leaves is true for a goto.
	leaves bool
}

// caller is what leads to a part: a chain whose rules name it, or a verdict map whose
// elements do.
type caller struct {
	from part
	// leaves is true for elements with a goto.
	leaves bool
}

// routes counts the elements of a verdict map by the number of the chain that they lead to.
type routes struct {
	jumps, gotos map[int]int
	// jump and leave are the greatest numbers that the callers know.
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
		l.visits += cost.Visit(r.rule)
		for c := range cost.Calls(r.rule) {
			id := chainID(c.Chain)
			if c.Map != "" {
				id = setID(c.Map)
			}
			l.calls = append(l.calls, call{at: l.visits, id: id, leaves: c.Goto})
		}
	}
}

// traceAdopted is trace for adopted rules, of which only is known where all of them
// together lead to.
func (l *ruleList) traceAdopted() {
	l.visits = len(l.rules)
	for i, id := range l.refs {
		if id.Kind == kindChain || id.Kind == kindSet {
			l.calls = append(l.calls, call{at: min(i+1, l.visits), id: id})
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
	addTo(o.routes.of(leaves), to.visits, by)
	s.outdate(o)
}

// outdate marks a part whose number must be computed again.
func (s *State) outdate(o part) {
	if n := o.base(); !n.outdated {
		n.outdated = true
		s.outdated = append(s.outdated, o)
	}
}

// evaluate computes the numbers of everything that is outdated, and of what leads there.
func (s *State) evaluate() {
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
	was, now := o.visits, o.worst()
	if o.loops {
		now = unbounded
	}
	if was == now {
		return
	}
	o.visits = now
	if o.exists() && o.decl().Base != nil {
		s.paths++
		if now > was {
			s.grown = append(s.grown, o)
		}
	}
	for c, n := range o.callers {
		if m, ok := c.from.(*set); ok {
			addTo(m.routes.of(c.leaves), was, -n)
			addTo(m.routes.of(c.leaves), now, n)
		}
		c.from.base().outdated = true
	}
}

func (o *set) evaluate() {
	if o.routes == nil {
		return
	}
	jump, leave := greatest(o.routes.jumps), greatest(o.routes.gotos)
	if o.loops {
		jump, leave = unbounded, unbounded
	}
	if jump == o.routes.jump && leave == o.routes.leave {
		return
	}
	o.routes.jump, o.routes.leave = jump, leave
	for c := range o.callers {
		c.from.base().outdated = true
	}
}

// worst returns how many rules a packet visits at most from the start of a chain.
func (o *chain) worst() int {
	run, most := 0, 0
	for _, sh := range o.shares {
		at := 0
		for i := 0; i < len(sh.calls); {
			rule, jump := sh.calls[i].at, 0
			run += rule - at
			at = rule
			for ; i < len(sh.calls) && sh.calls[i].at == rule; i++ {
				j, leave := o.target(sh.calls[i])
				jump, most = max(jump, j), max(most, run+leave)
			}
			run += jump
		}
		run += sh.ruleList.visits - at
	}
	return min(max(run, most), unbounded)
}

// target returns how many rules a packet visits after a call and comes back, and how many
// if it does not.
func (o *chain) target(c call) (jump, leave int) {
	switch t := o.table.parts[c.id].(type) {
	case *chain:
		if c.leaves {
			return 0, t.visits
		}
		return t.visits, 0
	case *set:
		if t.routes != nil {
			return t.routes.jump, t.routes.leave
		}
	}
	return 0, 0
}

// longestPath is the number of chains that a path names: the kernel allows 16.
const longestPath = 16

// path returns the names of the chains on the most expensive way through a chain.
func (o *chain) path() []string {
	names := []string{o.id.Name}
	for len(names) < longestPath {
		var next *chain
		consider := func(c *chain) {
			if next == nil || c.visits > next.visits || c.visits == next.visits && c.id.Name < next.id.Name {
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
		for _, e := range sh.elements.all() {
			if c, ok := o.table.parts[leadsTo(sh.decl, e.Data)].(*chain); ok && (most == nil || c.visits > most.visits) {
				most = c
			}
		}
	}
	return most
}
