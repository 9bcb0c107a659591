package desired

import (
	"cmp"
	"iter"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// remerge updates the union after a change of an ID, and calls visit with what changes in the kernel;
// c is the change of the element that decides on the ID.
func (o *set) remerge(id string, c *change, visit func(string, *change)) {
	m := o.merge
	before, had := m.Get(id)
	if !had {
		before, had = c.before, c.had && m.Apart(id, &c.before)
	}
	old, now := m.Update(o.shares, id)
	after, has := m.Get(id)
	if !has {
		after, has = c.after, c.has && m.Apart(id, &c.after)
	}
	if visit == nil {
		return
	}
	visit(id, &change{before: before, after: after, had: had, has: has, from: c.from, to: c.to, renewed: c.renewed})
	for i := range old {
		was := old[i].Key + old[i].KeyEnd
		if was == id {
			continue
		}
		e, has := m.Get(was)
		visit(was, &change{before: old[i], after: e, had: true, has: has})
	}
	for _, is := range now {
		_, had := slices.BinarySearchFunc(old, is, func(e nftset.Element, id string) int { return cmp.Compare(e.Key+e.KeyEnd, id) })
		if !had && is != id {
			visit(is, &change{after: m.Element(is), has: true})
		}
	}
}

// inForce returns the elements that the kernel is to have, by their IDs. Those of packets are not known.
func (o *set) inForce() iter.Seq2[string, nftset.Element] {
	return func(yield func(string, nftset.Element) bool) {
		m := o.merge
		if m != nil {
			for id, e := range m.Ranges() {
				if !yield(id, e) {
					return
				}
			}
		}
		for _, sh := range o.shares {
			if sh.passive {
				continue
			}
			for id, e := range sh.elements.All() {
				if m != nil && !m.Apart(id, &e) || o.winner(id) != sh {
					continue
				}
				if !yield(id, e) {
					return
				}
			}
		}
	}
}

// sorted returns the elements that the kernel is to have, in nft's order.
func (o *set) sorted() (all []nftset.Element) {
	for _, e := range o.inForce() {
		all = append(all, e)
	}
	slices.SortFunc(all, nftset.Compare)
	return all
}

// view returns the elements in force that a reader sees. It costs what there is in pages,
// not in elements.
func (o *set) view(r Reader) *packed.View {
	v := &packed.View{}
	if o.merge != nil && r.All {
		v.Merge = o.merge.Decl
	}
	for _, sh := range o.shares {
		if !sh.passive {
			v.Add(sh.elements, !r.sees(sh.fragment))
		}
	}
	return v
}
