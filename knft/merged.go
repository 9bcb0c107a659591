package knft

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
)

// views are the merged tables that a change has asked for.
type views map[nft.TableID]*view

// view is a merged table, as the aggregator holds it.
type view struct {
	// own is the adapter's fragment, "publisher/name".
	own string
	// elements is true if those of sets are there.
	elements bool
	chains   map[string]*weftv1.MergedChain
	sets     map[string]*weftv1.MergedSet
	// owners has the fragments that declare an object. Maps are sets here. The table has
	// no name, and its owners are the fragments that have something in it.
	owners map[itemID][]string
}

// newView indexes a table; a nil message is a table that does not exist.
func newView(own string, m *weftv1.GetTableResponse, elements bool) *view {
	v := &view{
		own: own, elements: elements, owners: make(map[itemID][]string),
		chains: make(map[string]*weftv1.MergedChain), sets: make(map[string]*weftv1.MergedSet),
	}
	others := func(k kind, name string, fragments []*weftv1.FragmentName) {
		v.owners[newItemID(k, name)] = slices.DeleteFunc(weftv1.FragmentTexts(fragments), func(f string) bool { return f == own })
	}
	others(kindTable, "", m.GetStatus().GetFragments())
	eachObject(m, others)
	for _, c := range m.GetChains() {
		v.chains[c.GetChain().GetName()] = c
	}
	for _, s := range m.GetSets() {
		v.sets[s.GetSet().GetName()] = s
	}
	return v
}

// eachObject calls f for each object of a table, with the fragments that declare it.
func eachObject(m *weftv1.GetTableResponse, f func(k kind, name string, fragments []*weftv1.FragmentName)) {
	for _, o := range m.GetObjects() {
		f(kind(o.GetObject().GetKind()), o.GetObject().GetName(), o.GetFragments())
	}
	for _, o := range m.GetFlowtables() {
		f(kindFlowtable, o.GetFlowtable().GetName(), o.GetFragments())
	}
	for _, c := range m.GetChains() {
		f(kindChain, c.GetChain().GetName(), c.GetFragments())
	}
	for _, s := range m.GetSets() {
		k := kindSet
		if s.GetMap() {
			k = kindMap
		}
		f(k, s.GetSet().GetName(), s.GetFragments())
	}
}

// othersOf returns the other fragments that declare an object, or that have something in
// the table.
func (v *view) othersOf(k kind, name string) []string {
	return v.owners[newItemID(k, name)]
}

// ownRules returns the adapter's rules in a chain, in order.
func (v *view) ownRules(chain string) []*weftv1.MergedRule {
	return slices.DeleteFunc(slices.Clone(v.chains[chain].GetRules()), func(r *weftv1.MergedRule) bool { return r.GetFragment().Text() != v.own })
}

// around returns how many rules of other fragments precede and follow the adapter's in
// a chain. If the adapter has none in the chain, all precede.
func (v *view) around(chain string) (before, after int) {
	rules := v.chains[chain].GetRules()
	first := slices.IndexFunc(rules, func(r *weftv1.MergedRule) bool { return r.GetFragment().Text() == v.own })
	if first < 0 {
		return len(rules), 0
	}
	return first, len(rules) - first - len(v.ownRules(chain))
}

// foreign returns the error for what belongs to other fragments. What was there before
// a restart, and no publisher has claimed since, is "" in merged tables.
func foreign(fragments []string) error {
	return fmt.Errorf("%w: %s", ErrForeign, cmp.Or(strings.Join(fragments, ", "), "its owner is unknown"))
}
