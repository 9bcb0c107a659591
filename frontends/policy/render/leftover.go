package render

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// leftovers are objects of an earlier process only. They stay until Cleanup: before kernel 6.2, an
// element keeps its chain busy for a moment after its deletion.
type leftovers map[string]*object

// newLeftovers returns an empty set if the aggregator adopted the table after its own restart: then
// types and rules are unknown, and the first update removes unpublished objects.
func newLeftovers(of *weftv1.Table) leftovers {
	out := make(leftovers)
	if sets := of.GetSets(); len(sets) > 0 && sets[0].GetType() == "" && sets[0].GetTypeof() == "" {
		return out
	}
	add := func(name string, o *object) {
		// Names of permanent objects have no hash.
		if prefix, rest, ok := strings.Cut(name, "-"); ok && prefix != "" && len(rest) >= hashDigits && strings.Trim(rest[:hashDigits], "0123456789abcdef") == "" {
			if out[name] == nil { // the first part of a split object declares it
				o.name, o.declared = name, true
				out[name] = o
			}
		}
	}
	for _, c := range of.GetChains() {
		add(c.GetName(), &object{content: c})
	}
	for _, s := range of.GetSets() {
		add(s.GetName(), &object{content: s})
	}
	for _, m := range of.GetMaps() {
		add(m.GetName(), &object{content: m, verdicts: true})
	}
	for _, c := range of.GetObjects() {
		add(c.GetName(), &object{content: c})
	}
	return out
}

func (l leftovers) adopt(o *object) bool {
	was := l[o.name]
	if was == nil {
		return false
	}
	delete(l, o.name)
	return proto.Equal(o.content, was.content)
}

func (l leftovers) sorted() []*object {
	return slices.SortedFunc(maps.Values(l), func(a, b *object) int { return strings.Compare(a.name, b.name) })
}
