package merge

import (
	"math/bits"
	"slices"

	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/datatype"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Each chain has a price: the nanoseconds (package cost) of a packet there and in the chains that
// it leads to, in the worst case and for every packet. The worst case has all rules. A rule that
// jumps adds its most expensive target, because a packet takes one and comes back; after a goto the
// chain ends.
//
// Changes mark parts as outdated. Evaluate starts at the targets and goes on to callers while
// prices change: it computes each part once.

// Price is in nanoseconds for a packet: in the worst case, and at least.
type Price struct{ Worst, Every int }

func (p Price) add(o Price) Price {
	return Price{min(p.Worst+o.Worst, Unbounded), min(p.Every+o.Every, Unbounded)}
}

// Paths has the base chains of each hook, and updates prices.
type Paths struct {
	// outdated are for Evaluate. order and steps are its scratch.
	outdated, order []priced
	steps           []step
	round           uint64
	// resized are sets with a possibly different LookupTime.
	resized []*Set
	// grown base chains became more expensive in the running change, attached ones are new at a
	// hook. version changes with every price and hook of a base chain.
	grown, attached []*Chain
	version         uint64
	Hooks           map[Hook]map[*Chain]struct{}
	evaluated       uint64
}

type priced interface {
	Part
	evaluate(p *Paths)
}

const (
	// Unbounded is the price of a loop. The kernel refuses loops that packets can enter.
	Unbounded = 1 << 40
	// adoptedTime is the price of an adopted rule, as in real rulesets.
	adoptedTime = 25
)

type call struct {
	// at is the worst price of the rules up to and including the call's, the same for all calls of
	// a rule.
	at int
	id ObjectID
	// leaves is true for a goto, every if no packet avoids the call.
	leaves, every bool
}

// caller is a chain or verdict map that leads to a part; leaves marks a goto.
type caller struct {
	From   priced
	leaves bool
}

// routes counts elements of a verdict map by their target's worst price: in counts[0] if they jump,
// in counts[1] if they leave (goto).
type routes struct {
	counts [2]map[int]int
	// most are the greatest prices known to callers.
	most [2]int
}

func (l *routes) count(leaves bool, price, by int) { addTo(&l.counts[Count(leaves)], price, by) }

func greatest(counts map[int]int) (most int) {
	for n := range counts {
		most = max(most, n)
	}
	return most
}

func (l *ruleList) trace() {
	for _, r := range l.Rules {
		v := cost.Packet(r.Rule)
		l.price.Worst += v.Worst
		if !l.ends {
			l.price.Every += v.Every
		}
		for c := range cost.Calls(r.Rule) {
			id := ChainID(c.Chain)
			if c.Set != "" {
				id = SetID(c.Set)
			}
			l.calls = append(l.calls, call{at: l.price.Worst, id: id, leaves: c.Goto, every: c.Every && !l.ends})
		}
		l.ends = l.ends || v.Ends
	}
}

// TraceAdopted is trace for adopted rules, with only their common targets.
func (l *ruleList) TraceAdopted() {
	l.price.Worst = adoptedTime * len(l.Rules)
	for i, id := range l.Refs {
		if id.Kind == KindChain || id.Kind == KindSet {
			l.calls = append(l.calls, call{at: min(adoptedTime*(i+1), l.price.Worst), id: id})
		}
	}
}

func (p *Paths) lead(o *Set, data string, target Part, by int) {
	to, ok := target.(*Chain)
	if !ok {
		return
	}
	v, err := nftset.ParseVerdictData(data)
	leaves := err == nil && v.Code == datatype.VerdictGoto
	addTo(&to.Callers, caller{o, leaves}, by)
	if o.routes == nil {
		o.routes = &routes{}
	}
	o.routes.count(leaves, to.Price.Worst, by)
	p.outdate(o)
}

func (p *Paths) resize(o *Set) {
	if !o.resized {
		o.resized = true
		p.resized = append(p.resized, o)
	}
}

// LookupTime returns nanoseconds, rounded up to three binary digits to change seldom.
func (o *Set) LookupTime() int {
	if !o.Exists() {
		return 0
	}
	n := o.Content().Lookup(o.Decl())
	unit := 1 << max(bits.Len(uint(n))-3, 0)
	return (n + unit - 1) &^ (unit - 1)
}

func (p *Paths) outdate(o priced) {
	if n := o.Base(); !n.outdated {
		n.outdated = true
		p.outdated = append(p.outdated, o)
	}
}

// Evaluate computes outdated prices and their consequences.
func (p *Paths) Evaluate() {
	for _, o := range p.resized {
		if o.resized = false; o.LookupTime() != o.Lookup {
			p.outdate(o)
		}
	}
	clear(p.resized)
	p.resized = p.resized[:0]
	if len(p.outdated) == 0 {
		return
	}
	p.arrange()
	for _, o := range slices.Backward(p.order) {
		n := o.Base()
		if !n.outdated {
			continue
		}
		n.outdated = false
		p.evaluated++
		o.evaluate(p)
	}
	for _, o := range p.order {
		// Parts of a loop were marked again.
		o.Base().outdated, o.Base().loops = false, false
	}
	clear(p.outdated)
	clear(p.order)
	p.outdated, p.order = p.outdated[:0], p.order[:0]
}

// step enters a part, or (leaves is true) finishes it after its callers.
type step struct {
	priced
	leaves bool
}

// arrange puts outdated parts and their callers in order, each after its callers, and finds loops.
func (p *Paths) arrange() {
	p.round++
	for _, o := range p.outdated {
		p.steps = append(p.steps, step{priced: o})
		for len(p.steps) > 0 {
			next := p.steps[len(p.steps)-1]
			p.steps = p.steps[:len(p.steps)-1]
			n := next.Base()
			switch {
			case next.leaves:
				n.active = false
				p.order = append(p.order, next.priced)
			case n.round == p.round && n.active:
				n.loops, n.outdated = true, true
			case n.round == p.round:
			default:
				n.round, n.active = p.round, true
				p.steps = append(p.steps, step{priced: next.priced, leaves: true})
				for c := range n.Callers {
					p.steps = append(p.steps, step{priced: c.From})
				}
			}
		}
	}
	clear(p.steps[:cap(p.steps)])
}

func (o *Chain) evaluate(p *Paths) {
	was, now := o.Price, Price{o.worst(), o.every()}
	if o.loops || now.Worst == Unbounded {
		now = Price{Unbounded, Unbounded}
	}
	if was == now {
		return
	}
	o.Price = now
	if o.Exists() && o.Decl().Base != nil {
		p.version++
		if now.Worst > was.Worst || now.Every > was.Every {
			p.grown = append(p.grown, o)
		}
	}
	for c, n := range o.Callers {
		if m, ok := c.From.(*Set); ok {
			m.routes.count(c.leaves, was.Worst, -n)
			m.routes.count(c.leaves, now.Worst, n)
		}
		c.From.Base().outdated = true
	}
}

func (o *Set) evaluate(*Paths) {
	lookup := o.LookupTime()
	changed := lookup != o.Lookup
	o.Lookup = lookup
	if o.routes != nil {
		most := [2]int{greatest(o.routes.counts[0]), greatest(o.routes.counts[1])}
		if o.loops {
			most = [2]int{Unbounded, Unbounded}
		}
		changed = changed || most != o.routes.most
		o.routes.most = most
	}
	if !changed {
		return
	}
	for c := range o.Callers {
		c.From.Base().outdated = true
	}
}

func (o *Chain) worst() int {
	run, most := 0, 0
	for _, sh := range o.Shares {
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
		run += sh.ruleList.price.Worst - at
	}
	return min(max(run, most), Unbounded)
}

func (o *Chain) every() (run int) {
	for _, sh := range o.Shares {
		run += sh.ruleList.price.Every
		for _, c := range sh.calls {
			if !c.every {
				continue
			}
			switch t := o.Table.Parts[c.id].(type) {
			case *Chain:
				run += t.Price.Every
			case *Set:
				run += t.Lookup
			}
		}
		if sh.ends {
			break
		}
	}
	return min(run, Unbounded)
}

func (o *Chain) target(c call) (lookup, jump, leave int) {
	switch t := o.Table.Parts[c.id].(type) {
	case *Chain:
		if c.leaves {
			return 0, 0, t.Price.Worst
		}
		return 0, t.Price.Worst, 0
	case *Set:
		if t.routes != nil {
			jump, leave = t.routes.most[0], t.routes.most[1]
		}
		return t.Lookup, jump, leave
	}
	return 0, 0, 0
}

// longestPath is the number of chains that the kernel allows on a way.
const longestPath = 16

// Path names the chains on the most expensive way.
func (o *Chain) Path() []string {
	names := []string{o.ID.Name}
	for len(names) < longestPath {
		var next *Chain
		consider := func(c *Chain) {
			if next == nil || c.Price.Worst > next.Price.Worst || c.Price.Worst == next.Price.Worst && c.ID.Name < next.ID.Name {
				next = c
			}
		}
		for _, sh := range o.Shares {
			for _, c := range sh.calls {
				switch t := o.Table.Parts[c.id].(type) {
				case *Chain:
					consider(t)
				case *Set:
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
		names = append(names, o.ID.Name)
	}
	return names
}

// dearest returns the most expensive target, or nil. It looks at all elements, for messages only.
func (o *Set) dearest() *Chain {
	var most *Chain
	for _, sh := range o.Shares {
		if !sh.Decl.Verdict {
			continue
		}
		for _, e := range sh.Elements.All() {
			if c, ok := o.Table.Parts[LeadsTo(sh.Decl, e.Data)].(*Chain); ok && (most == nil || c.Price.Worst > most.Price.Worst) {
				most = c
			}
		}
	}
	return most
}
