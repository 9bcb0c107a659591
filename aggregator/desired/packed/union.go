package packed

import (
	"iter"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/intervals"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Union is the union of the intervals in a set with auto-merge, as in the kernel: no ranges touch.
// Elements with a timeout stay apart.
type Union[S Holder] struct {
	Decl *nftset.Set
	// stated has the intervals of all shares, merged their union.
	stated, merged *intervals.Index
	// options are by ID of merged.
	options map[string]options
}

type Holder interface{ Packed() *Elements }

// NewUnion returns nil for a set without auto-merge.
func NewUnion[S Holder](d *nftset.Set, shares []S) *Union[S] {
	if !d.Merges() {
		return nil
	}
	n := int(d.Key.Len)
	m := &Union[S]{Decl: d, stated: intervals.New(n), merged: intervals.New(n), options: map[string]options{}}
	var ids []string
	for _, sh := range shares {
		for id, e := range sh.Packed().All() {
			if len(id) == m.stated.IDLen() && m.Decl.Merged(&e) {
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
		if x := m.first(shares, id); x != (options{}) {
			m.options[id] = x
		}
	}
	return m
}

func (m *Union[S]) Get(id string) (nftset.Element, bool) {
	if len(id) != m.merged.IDLen() || !m.merged.Has(id) {
		return nftset.Element{}, false
	}
	return m.Element(id), true
}

func (m *Union[S]) Size() int { return m.merged.Len() }

func (m *Union[S]) Ranges() iter.Seq2[string, nftset.Element] {
	return func(yield func(string, nftset.Element) bool) {
		for id := range m.merged.From("") {
			if !yield(id, m.Element(id)) {
				return
			}
		}
	}
}

// Overlapping returns the IDs of stated elements that overlap a range.
func (m *Union[S]) Overlapping(id string) iter.Seq[string] {
	if len(id) != m.stated.IDLen() {
		return func(func(string) bool) {}
	}
	return m.stated.Overlapping(id[:len(id)/2], id[len(id)/2:])
}

func (m *Union[S]) Element(id string) nftset.Element {
	x := m.options[id]
	return nftset.Element{Key: id[:len(id)/2], KeyEnd: id[len(id)/2:], Comment: x.comment, State: x.state}
}

// Apart reports whether the kernel has an element outside of the union: its share decides.
func (m *Union[S]) Apart(id string, e *nftset.Element) bool {
	return !m.Decl.Merged(e) && !m.stated.Has(id) && !m.merged.Has(id)
}

func (m *Union[S]) states(shares []S, id string) bool {
	return slices.ContainsFunc(shares, func(sh S) bool {
		e, ok := sh.Packed().Get(id)
		return ok && m.Decl.Merged(&e)
	})
}

// Update follows a change of the shares' elements with an ID. It returns the earlier ranges around
// it, and the present IDs.
func (m *Union[S]) Update(shares []S, id string) (before []nftset.Element, now intervals.Union) {
	if len(id) != m.stated.IDLen() {
		return nil, nil
	}
	switch is, was := m.states(shares, id), m.stated.Has(id); {
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
		if x := m.first(shares, id); x != (options{}) {
			m.options[id] = x
		}
	}
	return before, now
}

// around returns the ranges that overlap or touch first to last, and their new ranges.
func (m *Union[S]) around(first, last string) (before []nftset.Element, now intervals.Union) {
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
		before = append(before, m.Element(id))
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

// above is greater than all IDs with a first key, less than the next.
func above(first string) string { return first + strings.Repeat("\xff", len(first)+1) }

// first returns the options at the start of a range: as in nft, others are dropped. Of several
// elements, the last to end counts.
func (m *Union[S]) first(shares []S, id string) options {
	low := m.stated.Before(above(id[:len(id)/2]))
	for _, sh := range shares {
		if e, ok := sh.Packed().Get(low); ok && m.Decl.Merged(&e) && low[:len(low)/2] == id[:len(id)/2] {
			return optionsOf(&e)
		}
	}
	return options{}
}
