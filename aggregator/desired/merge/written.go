package merge

import (
	"slices"

	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// written counts rules with which packets make entries in a map, by value. Its zero value is ready
// for use.
type written struct {
	Rules map[Value]int
	// sources counts by set the rules that write any key of the set.
	sources map[*Set]int
	// before has the counts as of the last Accept, of changed values.
	before map[Value]int
}

// Value is the value of entries: Data, any key of In, or any value from the packet.
type Value struct {
	Data string
	In   *Set
	Any  bool
}

func (w *written) change(v Value, by int) {
	if _, ok := w.before[v]; !ok {
		if w.before == nil {
			w.before = map[Value]int{}
		}
		w.before[v] = w.Rules[v]
	}
	addTo(&w.Rules, v, by)
	if v.In != nil {
		addTo(&w.sources, v.In, by)
	}
}

func addTo[K comparable](counts *map[K]int, k K, by int) {
	if *counts == nil {
		*counts = map[K]int{}
	}
	if (*counts)[k] += by; (*counts)[k] == 0 {
		delete(*counts, k)
	}
}

// all reports whether rules may write every value: from the packet, or from a set with unknown
// elements.
func (w *written) all() bool {
	if w.Rules[Value{Any: true}] > 0 {
		return true
	}
	for in := range w.sources {
		if !in.Exists() || in.Decl().Map || in.Decl().Flags&(nftset.FlagInterval|nftset.FlagTimeout|nftset.FlagEval) != 0 {
			return true
		}
	}
	return false
}

// Lost reports whether rules wrote a value at the last Accept that no rule writes now.
func (w *written) Lost() bool {
	if w.all() {
		return false
	}
	for v, n := range w.before {
		if n > 0 && w.Rules[v] == 0 {
			return true
		}
	}
	for in := range w.sources {
		for id, was := range in.Touched {
			if was.Had && in.Winner(id) == nil {
				return true
			}
		}
	}
	return false
}

// Makes reports whether a rule may make the entry.
func (w *written) Makes(e *nftset.Element) bool {
	data := compile.PadData(e.Data)
	if w.all() || w.Rules[Value{Data: data}] > 0 {
		return true
	}
	for in := range w.sources {
		if in.Winner(data) != nil || in.Winner(e.Data) != nil {
			return true
		}
	}
	return false
}

// countRules adds or removes rules. It is its own inverse, without journal.
func (t *Table) countRules(m *marks, rules []*Slot, in bool) {
	for _, r := range rules {
		t.Sets.Anonymous += sign(in) * len(r.Rule.Anonymous)
		for _, w := range r.Rule.Writes {
			o, v := t.Set(w.Map), Value{Data: w.Data, Any: w.Any}
			m.Mark(o)
			if w.In != "" {
				v.In, v.Any = t.Set(w.In), false
				addTo(&v.In.values, o, sign(in))
			}
			o.Written.change(v, sign(in))
		}
	}
}

// Affinity reports whether entries are removed with the last rule that makes them.
func (o *Set) Affinity() bool {
	return slices.ContainsFunc(o.Shares, func(sh *SetShare) bool { return sh.Affinity })
}
