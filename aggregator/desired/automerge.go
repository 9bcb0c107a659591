package desired

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/intervals"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// automerge has what the kernel has of a set with auto-merge: the union of the intervals that the
// shares state, without one that touches another. An element with a timeout is not merged: it stays
// as it is stated.
type automerge struct {
	decl *nftset.Set
	// stated are the elements of all shares that are merged, merged is their union.
	stated, merged *intervals.Index
	// options are the options of ranges in merged, by ID. Most have none.
	options map[string]options
}

// newMerge returns the merge of a set, which has no elements yet; nil if the elements are not merged.
func newMerge(d *nftset.Set) *automerge {
	if !d.Merges() {
		return nil
	}
	n := int(d.Key.Len)
	return &automerge{decl: d, stated: intervals.New(n), merged: intervals.New(n), options: map[string]options{}}
}

// get returns a merged range.
func (m *automerge) get(id string) (nftset.Element, bool) {
	if len(id) != m.merged.IDLen() || !m.merged.Has(id) {
		return nftset.Element{}, false
	}
	return m.element(id), true
}

func (m *automerge) element(id string) nftset.Element {
	x := m.options[id]
	return nftset.Element{Key: id[:len(id)/2], KeyEnd: id[len(id)/2:], Comment: x.comment, State: x.state}
}

// apart reports whether an element that decides on its ID is in the kernel as it is stated.
func (m *automerge) apart(id string, e *nftset.Element) bool {
	return !m.decl.Merged(e) && !m.stated.Has(id) && !m.merged.Has(id)
}

// states reports whether a share of the set states an element that is merged.
func (m *automerge) states(o *set, id string) bool {
	return slices.ContainsFunc(o.shares, func(sh *setShare) bool {
		e, ok := sh.elements.get(id)
		return ok && m.decl.Merged(&e)
	})
}

// update brings the union to what the shares of the set state of an ID. It returns the ranges that the
// union had before around it, and the IDs of its ranges now.
func (m *automerge) update(o *set, id string) (before []nftset.Element, now intervals.Union) {
	if len(id) != m.stated.IDLen() {
		return nil, nil
	}
	switch is, was := m.states(o, id), m.stated.Has(id); {
	case !is && !was:
		return nil, nil
	case !is:
		m.stated.Remove(id)
	case !was:
		m.stated.Insert(id)
	}
	before, now = m.around(id[:len(id)/2], id[len(id)/2:])
	for i := range before {
		id := before[i].Key + before[i].KeyEnd
		delete(m.options, id)
		if _, stays := slices.BinarySearch(now, id); !stays {
			m.merged.Remove(id)
		}
	}
	for _, id := range now {
		if !m.merged.Has(id) {
			m.merged.Insert(id)
		}
		if x := m.first(o, id); x != (options{}) {
			m.options[id] = x
		}
	}
	return before, now
}

// around returns the ranges that overlap or touch those from first to last, and what becomes of them:
// outside, nothing has changed.
func (m *automerge) around(first, last string) (before []nftset.Element, now intervals.Union) {
	var right intervals.Union
	begin, next := nftset.Before(first), nftset.Next(last)
	from := m.merged.Before(first)
	if from == "" || from[len(from)/2:] < begin {
		from = first
	}
	for id := range m.merged.From(from) {
		low, high := id[:len(first)], id[len(id)/2:]
		if low > last && low != next {
			break
		}
		before = append(before, m.element(id))
		if low < first {
			now.Add(low, min(high, begin))
		}
		if high > last {
			right.Add(max(low, next), high)
		}
	}
	end := m.stated.Covered(above(first))
	if end >= first {
		now.Add(first, min(end, last))
	}
	for id := range m.stated.From(above(first)) {
		if end >= last || id[:len(first)] > last {
			break
		}
		end = max(end, id[len(id)/2:])
		now.Add(id[:len(first)], min(end, last))
	}
	for _, id := range right {
		now.Add(id[:len(first)], id[len(id)/2:])
	}
	return before, now
}

// above is greater than all IDs with a first key, and less than those with the next.
func above(first string) string { return first + strings.Repeat("\xff", len(first)+1) }

// first returns the options of the element with which a range begins: as in nft, the others have none.
// Of several, the one that ends last counts.
func (m *automerge) first(o *set, id string) options {
	low := m.stated.Before(above(id[:len(id)/2]))
	for _, sh := range o.shares {
		if e, ok := sh.elements.get(low); ok && m.decl.Merged(&e) && low[:len(low)/2] == id[:len(id)/2] {
			return optionsOf(&e)
		}
	}
	return options{}
}

// remerge updates the union after a change of an ID, and calls visit with what changes in the kernel;
// c is the change of the element that decides on the ID.
func (o *set) remerge(id string, c *change, visit func(string, *change)) {
	m := o.merge
	before, had := m.get(id)
	if !had {
		before, had = c.before, c.had && m.apart(id, &c.before)
	}
	old, now := m.update(o, id)
	after, has := m.get(id)
	if !has {
		after, has = c.after, c.has && m.apart(id, &c.after)
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
		e, has := m.get(was)
		visit(was, &change{before: old[i], after: e, had: true, has: has})
	}
	for _, is := range now {
		_, had := slices.BinarySearchFunc(old, is, func(e nftset.Element, id string) int { return cmp.Compare(e.Key+e.KeyEnd, id) })
		if !had && is != id {
			visit(is, &change{after: m.element(is), has: true})
		}
	}
}

// fill makes the union of a set anew.
func (o *set) fill() {
	if o.merge = newMerge(o.decl()); o.merge == nil {
		return
	}
	m := o.merge
	var ids []string
	for _, sh := range o.shares {
		for id, e := range sh.elements.all() {
			if len(id) == m.stated.IDLen() && m.decl.Merged(&e) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	var all intervals.Union
	for _, id := range slices.Compact(ids) {
		m.stated.Insert(id)
		all.Add(id[:len(id)/2], id[len(id)/2:])
	}
	for _, id := range all {
		m.merged.Insert(id)
		if x := m.first(o, id); x != (options{}) {
			m.options[id] = x
		}
	}
}

// inForce returns the elements that the kernel is to have, by their IDs. Those of packets are not known.
func (o *set) inForce() iter.Seq2[string, nftset.Element] {
	return func(yield func(string, nftset.Element) bool) {
		m := o.merge
		if m != nil {
			for id := range m.merged.From("") {
				if !yield(id, m.element(id)) {
					return
				}
			}
		}
		for _, sh := range o.shares {
			if sh.passive {
				continue
			}
			for id, e := range sh.elements.all() {
				if m != nil && !m.apart(id, &e) || o.winner(id) != sh {
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
