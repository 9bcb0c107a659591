package knft

import (
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
	// elements says that those of sets are there.
	elements bool
	// fragments are those that have something in the table.
	fragments []string
	chains    map[string]*weftv1.MergedChain
	sets      map[string]*weftv1.MergedSet
	// objects has the fragments that declare counters and flowtables.
	objects map[objectID][]string
	// rules has all of them by handle.
	rules map[uint64]*weftv1.MergedRule
}

// newView indexes a table; a nil message is a table that does not exist.
func newView(own string, m *weftv1.GetTableResponse, elements bool) *view {
	v := &view{
		own: own, elements: elements, fragments: weftv1.FragmentTexts(m.GetStatus().GetFragments()),
		chains: make(map[string]*weftv1.MergedChain), sets: make(map[string]*weftv1.MergedSet),
		rules: make(map[uint64]*weftv1.MergedRule), objects: make(map[objectID][]string),
	}
	for _, o := range m.GetObjects() {
		v.objects[objectID{kind(o.GetObject().GetKind()), o.GetObject().GetName()}] = weftv1.FragmentTexts(o.GetFragments())
	}
	for _, f := range m.GetFlowtables() {
		v.objects[objectID{kindFlowtable, f.GetFlowtable().GetName()}] = weftv1.FragmentTexts(f.GetFragments())
	}
	for _, c := range m.GetChains() {
		v.chains[c.GetChain().GetName()] = c
		for _, r := range c.GetRules() {
			v.rules[r.GetHandle()] = r
		}
	}
	for _, s := range m.GetSets() {
		v.sets[s.GetSet().GetName()] = s
	}
	return v
}

// except returns the fragments that are not the adapter's.
func (v *view) except(fragments []string) []string {
	return slices.DeleteFunc(slices.Clone(fragments), func(f string) bool { return f == v.own })
}

// othersOf returns the other fragments that declare an object, or have a part in
// the table.
func (v *view) othersOf(k kind, name string) []string {
	switch k {
	case kindTable:
		return v.except(v.fragments)
	case kindChain, kindRule:
		return v.except(weftv1.FragmentTexts(v.chains[name].GetFragments()))
	case kindSet, kindMap, kindElement:
		return v.except(weftv1.FragmentTexts(v.sets[name].GetFragments()))
	case kindCounter, kindFlowtable:
		return v.except(v.objects[objectID{k, name}])
	default:
		panic("unknown kind of object " + string(k))
	}
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
	names := strings.Join(fragments, ", ")
	if names == "" {
		names = "its owner is unknown"
	}
	return fmt.Errorf("%w: %s", ErrForeign, names)
}
