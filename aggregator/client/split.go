package client

import (
	"iter"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// partWeight is how much one request of a snapshot carries, in elements:
	// large enough that the cost of a message vanishes, small enough that the
	// aggregator decodes and packs one part while the next is on its way.
	partWeight = 4000
	// ruleWeight is what a rule counts: its compilation costs about as much as
	// that many elements.
	ruleWeight = 16
)

// weigh returns the size of a fragment in elements.
func weigh(f *weftv1.Fragment) int {
	n := len(f.GetNft()) / 32
	for _, t := range f.GetTables() {
		n += len(t.GetObjects()) + len(t.GetFlowtables())
		for _, c := range t.GetChains() {
			n += 1 + ruleWeight*len(c.GetRules())
		}
		for _, s := range slices.Concat(t.GetSets(), t.GetMaps()) {
			n += 1 + len(s.GetElements())
		}
	}
	return n
}

// parts returns about how many requests carry a fragment.
func parts(f *weftv1.Fragment) int {
	if f.GetNft() != "" {
		return 1
	}
	return 1 + weigh(f)/partWeight
}

// split returns the requests that carry a snapshot, in order; all but the last
// have More set. The messages share the fragment's objects and must not be
// changed.
func split(f *weftv1.Fragment, id uint64) iter.Seq[*weftv1.PublishRequest] {
	return func(yield func(*weftv1.PublishRequest) bool) {
		if parts(f) == 1 {
			yield(&weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}})
			return
		}
		s := splitter{whole: f, id: id, yield: yield}
		s.begin()
		for _, t := range f.GetTables() {
			if !s.addTable(t) {
				return
			}
		}
		s.end(false)
	}
}

// splitter collects one part at a time.
type splitter struct {
	whole *weftv1.Fragment
	id    uint64
	yield func(*weftv1.PublishRequest) bool

	part  *weftv1.Fragment
	table *weftv1.Table
	room  int
}

// begin starts a part, which repeats what the fragment says of itself.
func (s *splitter) begin() {
	s.part = Declaration(s.whole)
	s.room = partWeight
}

// end sends the part.
func (s *splitter) end(more bool) bool {
	return s.yield(&weftv1.PublishRequest{Id: s.id, Update: &weftv1.PublishRequest_Snapshot{Snapshot: s.part}, More: more})
}

// next sends the part and starts another one within the same table.
func (s *splitter) next() bool {
	if !s.end(true) {
		return false
	}
	s.begin()
	s.table = &weftv1.Table{Family: s.table.GetFamily(), Name: s.table.GetName()}
	s.part.Tables = append(s.part.Tables, s.table)
	return true
}

// addTable adds a table. The declarations of its objects and sets, all of them, come
// in one part before rules, which refer to them; then the elements.
func (s *splitter) addTable(t *weftv1.Table) bool {
	s.table = Declaration(t)
	s.table.Objects, s.table.Flowtables = t.GetObjects(), t.GetFlowtables()
	s.part.Tables = append(s.part.Tables, s.table)
	for i, list := range setLists(t) {
		for _, d := range *list {
			to := setLists(s.table)[i]
			*to = append(*to, Declaration(d))
		}
	}
	s.room -= len(t.GetSets()) + len(t.GetMaps()) + len(t.GetObjects()) + len(t.GetFlowtables())
	for _, c := range t.GetChains() {
		// A chain's rules stay together: a chain is replaced as a whole.
		if s.room <= 0 && !s.next() {
			return false
		}
		s.table.Chains = append(s.table.Chains, c)
		s.room -= 1 + ruleWeight*len(c.GetRules())
	}
	for i, list := range setLists(t) {
		for _, d := range *list {
			if !s.addElements(d, i) {
				return false
			}
		}
	}
	return true
}

// setLists returns the lists of the sets and of the maps of a table.
func setLists(t *weftv1.Table) [2]*[]*weftv1.Set { return [2]*[]*weftv1.Set{&t.Sets, &t.Maps} }

// addElements adds a set's elements under its name alone to one of the setLists.
func (s *splitter) addElements(d *weftv1.Set, list int) bool {
	for rest := d.GetElements(); len(rest) > 0; {
		if s.room <= 0 && !s.next() {
			return false
		}
		n, to := min(s.room, len(rest)), setLists(s.table)[list]
		*to = append(*to, &weftv1.Set{Name: d.GetName(), Elements: rest[:n:n]})
		s.room -= n
		rest = rest[n:]
	}
	return true
}
