package planner

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func (p *planner) elements(tc *tableChange, o *merge.Set, sc *partChange, added bool) {
	switch {
	case added:
		p.allElements(tc, o, sc)
	case o.Exists():
		p.changedElements(tc, o, sc)
		// Entries without a rule may stay. A new affinity map has not been searched before.
		if o.Affinity() && (!o.Purged || o.Written.Lost()) {
			p.purges = append(p.purges, desired.Purge{Table: tc.table.ID, Decl: o.Decl()})
		}
	}
}

func (p *planner) allElements(tc *tableChange, o *merge.Set, sc *partChange) {
	var b elementBatch
	if !p.repair && o.Merge == nil && len(o.Shares) == 1 && len(sc.touched) == 0 && o.Shares[0].Fresh != nil {
		// All come from one update, in its order.
		if sh := o.Shares[0]; len(sh.Fresh) > 0 {
			b = elementBatch{{sh.Origin, sh.Fresh}}
		}
	} else if o.Merge != nil {
		p.mergedElements(o, sc, &b)
	} else {
		for _, sh := range o.Shares {
			p.shareElements(o, sc, sh, &b)
		}
		for _, id := range slices.SortedFunc(maps.Keys(sc.touched), packed.CompareIDs) {
			p.s.Looked.Keys++
			if e, sh, ok := o.Wanted(id); ok && (sh == nil || !sh.Passive) {
				b.add(sc.touched[id].Origin, p.s.Expiries.Rest(sh, id, e))
			}
		}
	}
	p.addElements(tc, o, b, kernel.AddElements{First: true})
}

// mergedElements gives touched elements the origin of their last change, others the first origin.
func (p *planner) mergedElements(o *merge.Set, sc *partChange, b *elementBatch) {
	first := o.Origin
	for _, sh := range o.Shares {
		if sh.Origin >= 0 {
			first = min(first, sh.Origin)
		}
	}
	for id, e := range o.InForce() {
		p.s.Looked.Keys++
		t, touched := sc.touched[id]
		if !touched {
			t.Origin = first
		}
		_, sh, _ := o.Wanted(id)
		b.add(t.Origin, p.s.Expiries.Rest(sh, id, e))
	}
	for i := range *b {
		slices.SortFunc((*b)[i].elements, nftset.Compare)
	}
}

// shareElements adds the untouched elements that a share decides, in the update's order if known. A
// Diff touches other elements, and therefore cannot use Fresh.
func (p *planner) shareElements(o *merge.Set, sc *partChange, sh *merge.SetShare, b *elementBatch) {
	if sh.Passive {
		return
	}
	origin := sh.Origin
	if origin < 0 {
		origin = o.Origin
	}
	add := func(id string) {
		p.s.Looked.Keys++
		if _, ok := sc.touched[id]; ok || o.Winner(id) != sh {
			return
		}
		e, _ := sh.Elements.Get(id)
		b.add(origin, p.s.Expiries.Rest(sh, id, e))
	}
	if sh.Fresh == nil || p.repair {
		for _, id := range sh.Elements.IDs() {
			add(id)
		}
		return
	}
	for i := range sh.Fresh {
		add(packed.ID(sh.Decl, &sh.Fresh[i]))
	}
}

// changedElements replaces different touched elements, renews deadlines, and replaces elements with
// remade targets.
func (p *planner) changedElements(tc *tableChange, o *merge.Set, sc *partChange) {
	var del, add, renew elementBatch
	d := o.Decl()
	for _, id := range slices.SortedFunc(maps.Keys(sc.touched), packed.CompareIDs) {
		p.s.Looked.Keys++
		t := sc.touched[id]
		e, sh, ok := o.Wanted(id)
		if t.Had && ok && packed.Same(d, &t.Before, &e) && !tc.forcesElement(d, &e) {
			if t.Renews(d, sh, id, &e) {
				renew.add(t.Origin, p.s.Expiries.Rest(sh, id, e))
			}
			continue
		}
		if t.Had {
			del.add(t.Origin, t.Before)
		}
		switch {
		case ok && packed.Dynamic(d) && merge.Timed(d, &e):
			// A packet may have added it.
			renew.add(t.Origin, p.s.Expiries.Rest(sh, id, e))
		case ok:
			add.add(t.Origin, p.s.Expiries.Rest(sh, id, e))
		}
	}
	if tc.forced != nil && packed.HasTargets(d) {
		p.forcedElements(tc, o, sc, &del, &add)
	}
	p.needed = p.needed || tc.ahead && d.Verdict && slices.ContainsFunc(add, tc.leadsToNew(d))
	size := o.Size()
	if o.Merge != nil {
		size = o.Merge.Size()
	}
	for _, g := range del {
		p.counts.ElementsDeleted += len(g.elements)
		p.add(deleteElements, g.origin, kernel.DeleteElements{Table: tc.table.ID, Set: d, Elements: g.elements})
	}
	p.addElements(tc, o, add, kernel.AddElements{First: len(del) == 0 && add.len() == size})
	p.addElements(tc, o, renew, kernel.AddElements{Renew: true})
}

// leadsToNew reports for a group whether an element leads to a chain that the kernel lacks.
func (tc *tableChange) leadsToNew(d *nftset.Set) func(elementGroup) bool {
	return func(g elementGroup) bool {
		return slices.ContainsFunc(g.elements, func(e nftset.Element) bool {
			c := tc.table.Parts[merge.LeadsTo(d, e.Data)]
			return c != nil && c.Base().Kernel == nil
		})
	}
}

// forcedElements replaces untouched elements with remade targets. The origin is the target's.
func (p *planner) forcedElements(tc *tableChange, o *merge.Set, sc *partChange, del, add *elementBatch) {
	for _, sh := range o.Shares {
		for _, id := range sh.Elements.IDs() {
			p.s.Looked.Keys++
			e, _ := sh.Elements.Get(id)
			if _, ok := sc.touched[id]; ok || !tc.forcesElement(sh.Decl, &e) || o.Winner(id) != sh {
				continue
			}
			origin := tc.table.Part(merge.LeadsTo(sh.Decl, e.Data)).Base().Origin
			del.add(origin, e)
			add.add(origin, p.s.Expiries.Rest(sh, id, e))
		}
	}
}

// addElements adds each group like an op. First says that the kernel has no element.
func (p *planner) addElements(tc *tableChange, o *merge.Set, b elementBatch, like kernel.AddElements) {
	like.Table, like.Set = tc.table.ID, o.Decl()
	for i, g := range b {
		p.counts.ElementsAdded += len(g.elements)
		like.Elements, like.First = g.elements, like.First && i == 0
		p.add(addElements, g.origin, like)
	}
}

// elementBatch groups a set's elements by update, in order.
type elementBatch []elementGroup

type elementGroup struct {
	origin   int
	elements []nftset.Element
}

func (b *elementBatch) add(origin int, e nftset.Element) {
	i, ok := slices.BinarySearchFunc(*b, origin, func(g elementGroup, origin int) int { return cmp.Compare(g.origin, origin) })
	if !ok {
		*b = slices.Insert(*b, i, elementGroup{origin: origin})
	}
	g := &(*b)[i]
	g.elements = append(g.elements, e)
}

func (b elementBatch) len() (n int) {
	for _, g := range b {
		n += len(g.elements)
	}
	return n
}

func (p *planner) staleFlows(o *merge.Set, c *partChange) {
	before, _ := c.before.(*nftset.Set)
	staleOf(o, before, c.touched, func(st conntrack.Stale, deserted bool) {
		dest := netip.AddrPortFrom(st.Addr, st.Port)
		st.Removed = slices.DeleteFunc(st.Removed, func(to netip.AddrPort) bool { return leadsElsewhere(p.s, o.Table, dest, to) })
		if !st.First && len(st.Removed) == 0 {
			return
		}
		p.stale = append(p.stale, st)
		if deserted {
			p.deserted = append(p.deserted, st)
		}
	})
}
