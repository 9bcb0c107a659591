package knft

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
)

type views map[nft.TableID]*view

// view is a merged table, for a fragment.
type view struct {
	// "publisher/name"
	own string
	// with the elements of sets
	elements bool
	chains   map[string]*weftv1.MergedChain
	sets     map[string]*weftv1.MergedSet
	// other fragments that declare an object; maps have the kind set; the table has an empty name
	owners map[itemID][]string
}

// newView takes a nil m for a missing table.
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

func (v *view) othersOf(k kind, name string) []string {
	return v.owners[newItemID(k, name)]
}

func (v *view) ownRules(chain string) []*weftv1.MergedRule {
	return slices.DeleteFunc(slices.Clone(v.chains[chain].GetRules()), func(r *weftv1.MergedRule) bool { return !v.owns(r) })
}

// acceptedComment begins the comment of the rule that the aggregator puts first into chains of publishers with
// `accept` in the configuration.
const acceptedComment = "weft: accepted by publishers "

// owns excludes the aggregator's rule.
func (v *view) owns(r *weftv1.MergedRule) bool {
	return r.GetFragment().Text() == v.own && !strings.HasPrefix(r.GetRule().GetComment(), acceptedComment)
}

// around counts the rules before and after the fragment's own, which follow one another. Without own
// rules, all are before.
func (v *view) around(chain string) (before, after int) {
	rules := v.chains[chain].GetRules()
	first := slices.IndexFunc(rules, v.owns)
	if first < 0 {
		return len(rules), 0
	}
	return first, len(rules) - first - len(v.ownRules(chain))
}

// foreign names the owners: "" for unclaimed content from before a restart.
func foreign(fragments []string) error {
	return fmt.Errorf("%w: %s", ErrForeign, cmp.Or(strings.Join(fragments, ", "), "its owner is unknown"))
}
