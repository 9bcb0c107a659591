package render

import (
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

type list uint8

const (
	byCluster list = iota
	byLocal
	numLists
)

func (l list) of(b *model.Backends) model.Endpoints {
	if l == byCluster {
		return b.Cluster
	}
	return b.Local
}

// pool assigns the endpoints of a port to slots, for one family and list. The first active slots get new
// flows; for UDP all other serving endpoints follow.
type pool struct {
	list   list
	drains bool
	active int
	of     *model.Backends
	slots  slots
}

// newPool takes had in the form of previousSlots.
func newPool(f model.Family, protocol model.Protocol, l list, b *model.Backends, had []byte) *pool {
	p := &pool{list: l, drains: protocol == model.UDP, active: l.of(b).Len(), of: b, slots: slots{width: widths[f]}}
	draining := p.draining()
	p.slots.make(p.active + draining.Len())
	kept := p.keep(had)
	next := 0
	for _, endpoints := range []model.Endpoints{l.of(b), draining} {
		for e := range endpoints.All() {
			if kept[e.Addr] {
				continue
			}
			for !p.slots.vacant(next) {
				next++
			}
			p.slots.put(next, e.Addr)
		}
		next = p.active
	}
	return p
}

// keep returns the endpoints kept in their slots.
func (p *pool) keep(had []byte) map[netip.AddrPort]bool {
	if had == nil {
		return nil
	}
	kept := make(map[netip.AddrPort]bool)
	old := slots{width: p.slots.width, packed: had}
	for i := range min(old.len(), p.slots.len()) {
		if old.vacant(i) {
			continue
		}
		ep := old.at(i)
		if part := p.part(ep); kept[ep] || part == nowhere || (part == inFront) != (i < p.active) {
			continue
		}
		p.slots.put(i, ep)
		kept[ep] = true
	}
	return kept
}

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

type part uint8

const (
	nowhere part = iota
	inFront
	behind
)

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

func (p *pool) clone() *pool {
	out := *p
	out.slots = p.slots.clone()
	return &out
}

// slot is -1 if absent.
type candidate struct {
	ep   netip.AddrPort
	slot int
	part part
}

// revise assigns new endpoints, with candidates from differing. It returns the changed slots in order, and the
// number of endpoints considered. The result depends only on the slots and endpoints.
func (p *pool) revise(l list, b *model.Backends, candidates []candidate) (changed []int, looked int) {
	p.list, p.of = l, b
	active, total := l.of(b).Len(), p.slots.len()
	find := p.slots.finder(len(candidates))
	for i := range candidates {
		c := &candidates[i]
		if c.slot, c.part = find(c.ep), p.part(c.ep); c.slot >= 0 {
			total--
		}
		if c.part != nowhere {
			total++
		}
	}
	var edges []candidate
	for _, edge := range [2][2]int{{min(p.active, active), max(p.active, active)}, {total, p.slots.len()}} {
		for i := edge[0]; i < min(edge[1], p.slots.len()); i++ {
			ep := p.slots.at(i)
			edges = append(edges, candidate{ep: ep, slot: i, part: p.part(ep)})
		}
	}
	looked = len(candidates) + len(edges)
	if len(edges) > 0 {
		candidates = append(candidates, edges...)
		slices.SortFunc(candidates, func(a, b candidate) int { return a.ep.Compare(b.ep) })
		candidates = slices.CompactFunc(candidates, func(a, b candidate) bool { return a.ep == b.ep })
	}
	return p.move(candidates, active, total), looked
}

// differing is sorted.
func (p *pool) differing(l list, b *model.Backends) (out []candidate) {
	note := func(e model.Endpoint) { out = append(out, candidate{ep: e.Addr}) }
	l.of(b).Diff(p.list.of(p.of), note, note)
	if p.drains {
		b.Cluster.Diff(p.of.Cluster, note, note)
		b.Local.Diff(p.of.Local, note, note)
		b.Draining.Diff(p.of.Draining, note, note)
	}
	slices.SortFunc(out, func(a, b candidate) int { return a.ep.Compare(b.ep) })
	return slices.CompactFunc(out, func(a, b candidate) bool { return a.ep == b.ep })
}

// move fills the slots again. candidates are sorted. The first active of total slots get new flows.
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
