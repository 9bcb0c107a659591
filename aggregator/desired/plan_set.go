package desired

import (
	"cmp"
	"slices"

	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// set plans the ops that bring a set to its declaration and elements.
func (p *planner) set(tc *tableChange, sc *setChange) {
	o, t := sc.set, tc.table.id
	switch {
	case !o.exists():
		if sc.before != nil {
			p.counts.Sets++
			p.deleteSet(tc, sc)
		}
		return
	case sc.anew():
		p.counts.Sets += 2
		p.deleteSet(tc, sc)
		p.add(addSets, o.origin, kernel.AddSet{Table: t, Set: o.decl()})
		p.allElements(tc, sc)
	case sc.before == nil:
		p.counts.Sets++
		p.add(addSets, o.origin, kernel.AddSet{Table: t, Set: o.decl()})
		p.allElements(tc, sc)
	default:
		p.changedElements(tc, sc)
		if o.purges() {
			p.purges = append(p.purges, Purge{Table: t, Decl: o.decl()})
		}
	}
}

// deleteSet deletes a set. On older kernels maps let go of the chains and objects
// that they lead to only when they are emptied first.
func (p *planner) deleteSet(tc *tableChange, sc *setChange) {
	o, t := sc.set, tc.table.id
	if hasTargets(sc.before) {
		p.add(deleteSets, o.origin, kernel.FlushSet{Table: t, Name: o.name})
	}
	p.add(deleteSets, o.origin, kernel.DeleteSet{Table: t, Name: o.name})
}

// allElements adds all elements of a set that is new.
func (p *planner) allElements(tc *tableChange, sc *setChange) {
	o := sc.set
	var b elementBatch
	if !p.repair && len(o.shares) == 1 && len(sc.touched) == 0 && o.shares[0].fresh != nil {
		// All of it is one update's, in that update's order.
		b.take(o.shares[0].origin, o.shares[0].fresh)
	} else {
		for _, sh := range o.shares {
			p.shareElements(sc, sh, &b)
		}
		for _, id := range sortedKeys(sc.touched) {
			p.s.work.Keys++
			if e, ok := o.effective(id); ok && !o.winner(id).passive {
				b.add(sc.touched[id].origin, e)
			}
		}
	}
	p.addElements(tc, o, b)
}

// shareElements adds the elements that are a share's own and come from the
// update that brought the share: not those of another share, and not those
// touched later. A Diff touches other elements, so it cannot use fresh.
func (p *planner) shareElements(sc *setChange, sh *setShare, b *elementBatch) {
	if sh.passive {
		return
	}
	origin := sh.origin
	if origin < 0 {
		origin = sc.set.origin
	}
	add := func(id string) {
		p.s.work.Keys++
		if _, ok := sc.touched[id]; ok || sc.set.winner(id) != sh {
			return
		}
		e, _ := sh.elements.get(id)
		b.add(origin, e)
	}
	if sh.fresh == nil || p.repair {
		for _, id := range sh.elements.ids() {
			add(id)
		}
		return
	}
	for i := range sh.fresh {
		add(elementID(sh.decl, &sh.fresh[i]))
	}
}

// changedElements deletes and adds the touched keys that differ, and the
// elements that lead to objects that are made anew.
func (p *planner) changedElements(tc *tableChange, sc *setChange) {
	o := sc.set
	var del, add elementBatch
	d := o.decl()
	for _, id := range sortedKeys(sc.touched) {
		p.s.work.Keys++
		t := sc.touched[id]
		e, ok := o.effective(id)
		if t.had && ok && sameElement(d, &t.before, &e) && !tc.forcesElement(d, &e) {
			continue
		}
		if t.had {
			del.add(t.origin, t.before)
		}
		if ok {
			add.add(t.origin, e)
		}
	}
	if tc.forced != nil && hasTargets(d) {
		p.forcedElements(tc, sc, &del, &add)
	}
	for _, g := range del {
		p.counts.ElementsDeleted += len(g.elements)
		p.add(deleteElements, g.origin, kernel.DeleteElements{Table: tc.table.id, Set: d, Elements: g.elements})
	}
	p.addElements(tc, o, add)
}

// forcedElements deletes and adds again the untouched elements that lead to
// objects that are made anew. They come from the update that changed the
// object.
func (p *planner) forcedElements(tc *tableChange, sc *setChange, del, add *elementBatch) {
	for _, sh := range sc.set.shares {
		for _, id := range sh.elements.ids() {
			p.s.work.Keys++
			e, _ := sh.elements.get(id)
			if _, ok := sc.touched[id]; ok || !tc.forcesElement(sh.decl, &e) || sc.set.winner(id) != sh {
				continue
			}
			origin := tc.table.leadsOrigin(sh.decl, e.Data)
			del.add(origin, e)
			add.add(origin, e)
		}
	}
}

func (p *planner) addElements(tc *tableChange, o *set, b elementBatch) {
	for _, g := range b {
		p.counts.ElementsAdded += len(g.elements)
		p.add(addElements, g.origin, kernel.AddElements{Table: tc.table.id, Set: o.decl(), Elements: g.elements})
	}
}

// elementBatch groups elements of one set by the update that they come from, in the
// order of the updates. Nearly always there is one.
type elementBatch []elementGroup

type elementGroup struct {
	origin   int
	elements []nftset.Element
}

func (b *elementBatch) add(origin int, e nftset.Element) {
	g := b.group(origin)
	g.elements = append(g.elements, e)
}

// take uses elements without a copy.
func (b *elementBatch) take(origin int, elems []nftset.Element) {
	if len(elems) > 0 {
		b.group(origin).elements = elems
	}
}

// group returns the group of an update, made when it is new.
func (b *elementBatch) group(origin int) *elementGroup {
	i, ok := slices.BinarySearchFunc(*b, origin, func(g elementGroup, origin int) int { return cmp.Compare(g.origin, origin) })
	if !ok {
		*b = slices.Insert(*b, i, elementGroup{origin: origin})
	}
	return &(*b)[i]
}

// leadsOrigin returns the update that changed the object that an element leads
// to.
func (t *table) leadsOrigin(d *nftset.Set, data string) int {
	if id := leadsToObject(d, data); id.Name != "" {
		return t.objects[id].origin
	}
	return t.chains[verdictChain(data)].origin
}
