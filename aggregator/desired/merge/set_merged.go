package merge

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// maxRecordedWins bounds the conflicts of a set: beyond, no key is recorded.
const maxRecordedWins = 4096

func (o *Set) updateConflict(b *observed, id string) {
	_, was := o.conflicts[id]
	is := o.disagree(id)
	if was || is {
		b.unrecord(o)
	}
	switch {
	case is && !was:
		if o.conflicts == nil {
			o.conflicts = map[string]struct{}{}
		}
		// The ID may be part of a longer text, which it would keep in memory.
		o.conflicts[strings.Clone(id)] = struct{}{}
	case was && !is:
		delete(o.conflicts, id)
	}
}

// disagree reports whether it matters who decides on an element: elements differ, or may differ
// later in a map.
func (o *Set) disagree(id string) bool {
	var first *SetShare
	for _, sh := range o.Shares {
		e, ok := sh.Elements.Get(id)
		switch {
		case !ok || sh.Fragment.Unclaimed:
		case first == nil:
			first = sh
		case sh.Decl.Map:
			return true
		default:
			if _, same := first.Elements.Same(id, &e); !same {
				return true
			}
		}
	}
	return false
}

// Wins returns the sorted keys that a share decides against others, with keys from before a restart
// while fragments are awaited.
func (o *Set) Wins(sh *SetShare) [][]byte {
	var ids []string
	if len(o.conflicts) <= maxRecordedWins {
		for id := range o.conflicts {
			if o.Winner(id) == sh {
				ids = append(ids, id)
			}
		}
	}
	if len(sh.Won) > 0 && o.awaited() {
		for _, id := range sh.Won {
			if sh.Elements.Has(string(id)) {
				ids = append(ids, string(id))
			}
		}
	}
	slices.Sort(ids)
	var wins [][]byte
	for _, id := range slices.Compact(ids) {
		wins = append(wins, []byte(id))
	}
	return wins
}

// Size returns the number of different keys, before auto-merge, without a Passive share.
func (o *Set) Size() int {
	n := o.union
	switch len(o.Shares) {
	case 0:
		return 0
	case 1:
		n = o.Shares[0].Elements.Len()
	}
	if sh := o.unclaimed(); sh != nil && sh.Passive {
		n -= sh.Elements.Len()
	}
	return n
}

// remerge updates the union after the change c of an ID, and visits each change for the kernel.
func (o *Set) remerge(id string, c *elementChange, visit func(string, *elementChange)) {
	m := o.Merge
	before, had := m.Get(id)
	if !had {
		before, had = c.before, c.had && m.Apart(id, &c.before)
	}
	old, now := m.Update(o.Shares, id)
	after, has := m.Get(id)
	if !has {
		after, has = c.after, c.has && m.Apart(id, &c.after)
	}
	if visit == nil {
		return
	}
	visit(id, &elementChange{before: before, after: after, had: had, has: has, from: c.from, to: c.to, renewed: c.renewed})
	for i := range old {
		was := old[i].Key + old[i].KeyEnd
		if was == id {
			continue
		}
		e, has := m.Get(was)
		visit(was, &elementChange{before: old[i], after: e, had: true, has: has})
	}
	for _, is := range now {
		_, had := slices.BinarySearchFunc(old, is, func(e nftset.Element, id string) int { return cmp.Compare(e.Key+e.KeyEnd, id) })
		if !had && is != id {
			visit(is, &elementChange{after: m.Element(is), has: true})
		}
	}
}

// InForce returns by ID the elements that the kernel should have, without Passive shares.
func (o *Set) InForce() iter.Seq2[string, nftset.Element] {
	return func(yield func(string, nftset.Element) bool) {
		m := o.Merge
		if m != nil {
			for id, e := range m.Ranges() {
				if !yield(id, e) {
					return
				}
			}
		}
		for _, sh := range o.Shares {
			if sh.Passive {
				continue
			}
			for id, e := range sh.Elements.All() {
				if m != nil && !m.Apart(id, &e) || o.Winner(id) != sh {
					continue
				}
				if !yield(id, e) {
					return
				}
			}
		}
	}
}

func (o *Set) Sorted() (all []nftset.Element) {
	for _, e := range o.InForce() {
		all = append(all, e)
	}
	slices.SortFunc(all, nftset.Compare)
	return all
}

// View returns the visible elements in force. It costs pages, not elements.
func (o *Set) View(r desired.Reader) *packed.View {
	v := &packed.View{}
	if o.Merge != nil && r.All {
		v.Merge = o.Merge.Decl
	}
	for _, sh := range o.Shares {
		if !sh.Passive {
			v.Add(sh.Elements, !Seen(r, sh.Fragment))
		}
	}
	return v
}
