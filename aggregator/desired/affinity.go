package desired

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Purge names an affinity map in which there may be entries that packets have made
// and that no rule makes any more.
type Purge struct {
	Table nft.TableID
	// Decl is the declaration that the kernel has.
	Decl *nftset.Set
}

func comparePurges(a, b Purge) int {
	return cmp.Or(compareTables(a.Table, b.Table), strings.Compare(a.Decl.Name, b.Decl.Name))
}

// written counts the rules that have packets make entries in a map, by the value
// of the entries. Its zero value is ready for use.
type written struct {
	rules map[value]int
	// sources counts the rules that write any key of a set, by set.
	sources map[*set]int
	// before has the counts as of the last Accept of values whose count has changed
	// since.
	before map[value]int
}

// value is the value of entries: one that rules state, any that is a key of a set, or
// any value from the packet.
type value struct {
	data string
	in   *set
	any  bool
}

// change counts rules that begin or cease to write a value.
func (w *written) change(v value, by int) {
	if _, ok := w.before[v]; !ok {
		if w.before == nil {
			w.before = map[value]int{}
		}
		w.before[v] = w.rules[v]
	}
	addTo(&w.rules, v, by)
	if v.in != nil {
		addTo(&w.sources, v.in, by)
	}
}

// addTo changes a count, and leaves out those that are zero.
func addTo[K comparable](counts *map[K]int, k K, by int) {
	if *counts == nil {
		*counts = map[K]int{}
	}
	if (*counts)[k] += by; (*counts)[k] == 0 {
		delete(*counts, k)
	}
}

// all reports whether rules write every value: any from the packet, or one that is in a
// set whose elements are not known.
func (w *written) all() bool {
	if w.rules[value{any: true}] > 0 {
		return true
	}
	for in := range w.sources {
		if !in.exists() || in.decl().Map || in.decl().Flags&(nftset.FlagInterval|nftset.FlagTimeout|nftset.FlagEval) != 0 {
			return true
		}
	}
	return false
}

// lost reports whether rules wrote something as of the last Accept that none
// writes now.
func (w *written) lost() bool {
	if w.all() {
		return false
	}
	for v, n := range w.before {
		if n > 0 && w.rules[v] == 0 {
			return true
		}
	}
	for in := range w.sources {
		for id, was := range in.touched {
			if was.had && in.winner(id) == nil {
				return true
			}
		}
	}
	return false
}

// makes reports whether a rule writes entries with an element's value.
func (w *written) makes(e *nftset.Element) bool {
	data := compile.PadData(e.Data)
	if w.all() || w.rules[value{data: data}] > 0 {
		return true
	}
	for in := range w.sources {
		if in.winner(data) != nil || in.winner(e.Data) != nil {
			return true
		}
	}
	return false
}

// countRules adds or removes the counts of what rules write, and of their anonymous sets. It is
// its own inverse and writes no journal.
func (s *State) countRules(t *table, rules []*slot, in bool) {
	for _, r := range rules {
		t.sets.Anonymous += sign(in) * len(r.rule.Anonymous)
		for _, w := range r.rule.Writes {
			o, v := t.set(w.Map), value{data: w.Data, any: w.Any}
			s.mark(o)
			if w.In != "" {
				v.in, v.any = t.set(w.In), false
				addTo(&v.in.values, o, sign(in))
			}
			o.written.change(v, sign(in))
		}
	}
}

// affinity reports whether entries of a map are removed with the last rule that
// makes them.
func (o *set) affinity() bool {
	return slices.ContainsFunc(o.shares, func(sh *setShare) bool { return sh.affinity })
}

// stated reports whether a fragment states an element itself.
func (o *set) stated(id string) bool {
	return slices.ContainsFunc(o.shares, func(sh *setShare) bool {
		return !sh.passive && sh.elements.Has(id)
	})
}

// Leftovers returns the dumped entries of a map that must be removed: no rule
// makes them any more, and no fragment states them. Changes since the last
// Accept count. It returns nil if the map is not an affinity map or was
// declared in another way since.
func (s *State) Leftovers(p Purge, entries []nftset.Element) []nftset.Element {
	o, ok := find[*set](s, p.Table, setID(p.Decl.Name))
	if !ok || !o.affinity() || !p.Decl.Equal(o.decl()) {
		return nil
	}
	var gone []nftset.Element
	for i := range entries {
		if e := &entries[i]; !o.written.makes(e) && !o.stated(packed.ID(o.decl(), e)) {
			gone = append(gone, *e)
		}
	}
	return gone
}

// Unpurged returns the affinity maps of a dump that have entries to remove. It
// is for a start and for a foreign change, after which it is not known which
// maps were searched.
func (s *State) Unpurged(dump []kernel.Table) []Purge {
	var purges []Purge
	for i := range dump {
		for j := range dump[i].Sets {
			d := &dump[i].Sets[j]
			if d.Decl == nil {
				continue
			}
			p := Purge{Table: dump[i].ID, Decl: d.Decl}
			if o, ok := find[*set](s, p.Table, setID(p.Decl.Name)); ok && len(s.Leftovers(p, d.Elements)) > 0 {
				p.Decl = o.decl()
				purges = append(purges, p)
			}
		}
	}
	slices.SortFunc(purges, comparePurges)
	return purges
}
