package render

import (
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// list is one of the two choices of endpoints of a port.
type list uint8

const (
	// byCluster is the choice of the traffic policy Cluster, byLocal that of Local.
	byCluster list = iota
	byLocal
	numLists
)

// of returns the endpoints of the choice.
func (l list) of(b *model.Backends) model.Endpoints {
	if l == byCluster {
		return b.Cluster
	}
	return b.Local
}

// pool is where the endpoints of a port sit, in one family and for one list. All
// fronts of the port with that list share it. The first active ones get new flows.
// Behind them, for UDP, are those that keep the flows that they have: whatever
// else serves.
type pool struct {
	list   list
	drains bool
	active int
	of     *model.Backends
	slots  slots
}

// newPool returns a pool in which endpoints stay, as far as they can, in the slots
// where a predecessor had them; had is as in hint.
func newPool(f model.Family, protocol model.Protocol, l list, b *model.Backends, had []byte) *pool {
	p := &pool{list: l, drains: protocol == model.UDP, active: l.of(b).Len(), of: b, slots: newSlots(f)}
	draining := p.draining()
	p.slots.make(p.active + draining.Len())
	p.keep(had)
	next := 0
	for _, endpoints := range []model.Endpoints{l.of(b), draining} {
		for e := range endpoints.All() {
			if had != nil {
				if slot, _ := p.slots.find(e.Addr); slot >= 0 {
					continue
				}
			}
			for had != nil && !p.slots.vacant(next) {
				next++
			}
			p.slots.put(next, e.Addr)
			next++
		}
		next = p.active
	}
	return p
}

// keep fills the empty slots of a pool with those that may stay where they were.
func (p *pool) keep(had []byte) {
	old := slots{width: p.slots.width, packed: had}
	for i := range min(old.len(), p.slots.len()) {
		if old.vacant(i) {
			continue
		}
		ep := old.at(i)
		if part := p.part(ep); part == nowhere || (part == inFront) != (i < p.active) {
			continue
		}
		if slot, _ := p.slots.find(ep); slot < 0 {
			p.slots.put(i, ep)
		}
	}
}

// draining returns the endpoints behind the active ones.
func (p *pool) draining() model.Endpoints {
	if !p.drains {
		return model.Endpoints{}
	}
	var out []model.Endpoint
	for _, l := range []model.Endpoints{p.of.Cluster, p.of.Local, p.of.Draining} {
		for e := range l.All() {
			if !p.list.of(p.of).Has(e.Addr) {
				out = append(out, e)
			}
		}
	}
	return model.MakeEndpoints(out...)
}

// part is where in a pool an endpoint belongs.
type part uint8

const (
	nowhere part = iota
	inFront
	behind
)

// part returns where an endpoint belongs.
func (p *pool) part(ep netip.AddrPort) part {
	switch {
	case p.list.of(p.of).Has(ep):
		return inFront
	case p.drains && (p.of.Cluster.Has(ep) || p.of.Local.Has(ep) || p.of.Draining.Has(ep)):
		return behind
	default:
		return nowhere
	}
}

// clone returns a pool that can be revised while this one stays.
func (p *pool) clone() *pool {
	out := *p
	out.slots = p.slots.clone()
	return &out
}

// candidate is an endpoint that may have to move: where it is, -1 for nowhere, and
// where it belongs.
type candidate struct {
	ep   netip.AddrPort
	slot int
	part part
}

// revise makes the pool that of other endpoints, or of another list; candidates are
// what differing said of them. Whatever can stay stays, the others fill the gaps in
// their order; the result depends on nothing but the slots and the endpoints. The cost
// is that of those that differ. It returns the slots that have another endpoint, in
// order, and how much it looked at.
func (p *pool) revise(l list, b *model.Backends, candidates []candidate) (changed []int, looked int) {
	p.list, p.of = l, b
	find := func(c *candidate) {
		slot, n := p.slots.find(c.ep)
		c.slot, c.part = slot, p.part(c.ep)
		looked += n + 1
	}
	active, total := l.of(b).Len(), p.slots.len()
	for i := range candidates {
		c := &candidates[i]
		find(c)
		if c.slot >= 0 {
			total--
		}
		if c.part != nowhere {
			total++
		}
	}
	// Where a part ends elsewhere, those at its end may have to move.
	var edges []candidate
	for _, edge := range [2][2]int{{min(p.active, active), max(p.active, active)}, {total, p.slots.len()}} {
		for i := edge[0]; i < min(edge[1], p.slots.len()); i++ {
			c := candidate{ep: p.slots.at(i)}
			find(&c)
			edges = append(edges, c)
		}
	}
	if len(edges) > 0 {
		candidates = append(candidates, edges...)
		slices.SortFunc(candidates, func(a, b candidate) int { return a.ep.Compare(b.ep) })
		candidates = slices.CompactFunc(candidates, func(a, b candidate) bool { return a.ep == b.ep })
	}
	return p.move(candidates, active, total), looked
}

// differing returns the endpoints that are in other lists than they were, sorted.
func (p *pool) differing(l list, b *model.Backends) (out []candidate) {
	note := func(e model.Endpoint) { out = append(out, candidate{ep: e.Addr}) }
	l.of(b).Since(p.list.of(p.of), note, note)
	if p.drains {
		b.Cluster.Since(p.of.Cluster, note, note)
		b.Local.Since(p.of.Local, note, note)
		b.Draining.Since(p.of.Draining, note, note)
	}
	slices.SortFunc(out, func(a, b candidate) int { return a.ep.Compare(b.ep) })
	return slices.CompactFunc(out, func(a, b candidate) bool { return a.ep == b.ep })
}

// move brings sorted candidates to where they belong, with total slots in the end,
// of which the first active ones get new flows.
func (p *pool) move(candidates []candidate, active, total int) (changed []int) {
	var gaps []int
	var homeless [behind + 1][]netip.AddrPort
	for _, c := range candidates {
		stays := c.slot >= 0 && c.slot < total &&
			(c.part == inFront && c.slot < active || c.part == behind && c.slot >= active)
		if stays {
			continue
		}
		if c.slot >= 0 {
			p.slots.vacate(c.slot)
			gaps = append(gaps, c.slot)
		}
		homeless[c.part] = append(homeless[c.part], c.ep)
	}
	for i := p.slots.len(); i < total; i++ {
		gaps = append(gaps, i)
	}
	slices.Sort(gaps)
	end, _ := slices.BinarySearch(gaps, total)
	gaps = gaps[:end]
	for _, i := range gaps {
		of := &homeless[inFront]
		if i >= active {
			of = &homeless[behind]
		}
		p.slots.put(i, (*of)[0])
		*of = (*of)[1:]
	}
	p.slots.cut(total)
	p.active = active
	return gaps
}
