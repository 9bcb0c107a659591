package client

import (
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// partWeight is the size of a request, in elements: the cost of a message is negligible, and
	// the aggregator decodes one part while the next arrives.
	partWeight = 4000
	// ruleWeight is the cost of compiling a rule, in elements.
	ruleWeight = 16
)

func weigh(f *weftv1.Fragment) int {
	n := len(f.GetNft()) / 32
	for _, t := range f.GetTables() {
		n += len(t.GetObjects()) + len(t.GetFlowtables())
		for _, c := range t.GetChains() {
			n += 1 + ruleWeight*len(c.GetRules())
		}
		for _, s := range slices.Concat(t.GetSets(), t.GetMaps()) {
			n += 1 + len(s.GetElements()) + weftv1.CountPacked(s.GetPacked())
		}
	}
	return n
}

func parts(f *weftv1.Fragment) int {
	if f.GetNft() != "" {
		return 1
	}
	return 1 + weigh(f)/partWeight
}

// split returns requests that share f's objects and must not be changed.
func split(f *weftv1.Fragment, id uint64) []*weftv1.PublishRequest {
	s := splitter{whole: f, id: id}
	if parts(f) == 1 {
		s.addPart(f)
		return s.parts
	}
	s.begin(nil)
	for _, t := range f.GetTables() {
		s.addTable(t)
	}
	return s.parts
}

type splitter struct {
	whole *weftv1.Fragment
	id    uint64
	parts []*weftv1.PublishRequest

	// the last part and its last table
	part  *weftv1.Fragment
	table *weftv1.Table
	// of the part, in elements
	room int
}

func (s *splitter) addPart(f *weftv1.Fragment) {
	if n := len(s.parts); n > 0 {
		s.parts[n-1].More = true
	}
	s.part = f
	s.parts = append(s.parts, &weftv1.PublishRequest{Id: s.id, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}})
}

// begin starts a part, within a table if t is not nil.
func (s *splitter) begin(t *weftv1.Table) {
	s.addPart(Declaration(s.whole))
	s.room = partWeight
	if t != nil {
		s.enter(&weftv1.Table{Family: t.GetFamily(), Name: t.GetName()})
	}
}

func (s *splitter) enter(t *weftv1.Table) {
	s.table = t
	s.part.Tables = append(s.part.Tables, t)
}

// with returns the table of a part with room.
func (s *splitter) with(t *weftv1.Table, weight int) *weftv1.Table {
	if s.room <= 0 {
		s.begin(t)
	}
	s.room -= weight
	return s.table
}

func (s *splitter) addTable(t *weftv1.Table) {
	s.enter(Declaration(t))
	s.table.Flowtables = t.GetFlowtables()
	for _, o := range t.GetObjects() {
		to := s.with(t, 1)
		to.Objects = append(to.Objects, o)
	}
	for i, list := range setLists(t) {
		for _, d := range *list {
			to := setLists(s.with(t, 1))[i]
			*to = append(*to, Declaration(d))
		}
	}
	for _, c := range t.GetChains() {
		// A chain is replaced as a whole.
		to := s.with(t, 1+ruleWeight*len(c.GetRules()))
		to.Chains = append(to.Chains, c)
	}
	for i, list := range setLists(t) {
		for _, d := range *list {
			for rest := d.GetElements(); len(rest) > 0; {
				to := setLists(s.with(t, 0))[i]
				n := min(s.room, len(rest))
				*to = append(*to, &weftv1.Set{Name: d.GetName(), Elements: rest[:n:n]})
				s.room -= n
				rest = rest[n:]
			}
			for _, p := range d.GetPacked() {
				to := setLists(s.with(t, int(p.GetCount())))[i]
				*to = append(*to, &weftv1.Set{Name: d.GetName(), Packed: []*weftv1.PackedElements{p}})
			}
		}
	}
}

func setLists(t *weftv1.Table) [2]*[]*weftv1.Set { return [2]*[]*weftv1.Set{&t.Sets, &t.Maps} }
