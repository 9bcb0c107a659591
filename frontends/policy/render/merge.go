package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// manyRules is up to how many rules of a policy are rendered one by one.
const manyRules = 100

// merge joins the rules with the same ports: their blocks in one set, and each set of pods
// once. All rules of a NetworkPolicy accept, and so their order does not matter.
func merge(rules []model.Rule) []model.Rule {
	var out []model.Rule
	at := make(map[string]int)
	counts := make([]int, 0, len(rules))
	for i := range rules {
		r := &rules[i]
		ports := portsKey(r)
		n, ok := at[ports]
		if !ok {
			n = len(out)
			at[ports] = n
			first := *r
			first.Pods, first.Blocks = nil, nil
			out = append(out, first)
			counts = append(counts, 0)
		}
		m := &out[n]
		counts[n]++
		m.Any = m.Any || r.Any
		m.Pods = append(m.Pods, r.Pods...)
		m.Blocks = append(m.Blocks, r.Blocks...)
	}
	for n := range out {
		m := &out[n]
		if counts[n] > 1 {
			m.Name = fmt.Sprintf("%s and %d more", m.Name, counts[n]-1)
		}
		if m.Any {
			m.Pods, m.Blocks = nil, nil
			continue
		}
		slices.Sort(m.Pods)
		m.Pods = slices.Compact(m.Pods)
		m.Blocks = union(m.Blocks)
	}
	return out
}

// portsKey is equal for rules with the same ports.
func portsKey(r *model.Rule) string {
	if r.AllPorts {
		return "all"
	}
	var b strings.Builder
	for _, p := range r.Ports {
		fmt.Fprintf(&b, "%d:%d-%d ", p.Protocol, p.First, p.Last)
	}
	for _, id := range r.NamedPorts {
		fmt.Fprintf(&b, "%q ", id)
	}
	return b.String()
}

// union sorts ranges, IPv4 first, and joins those that overlap or are adjacent.
func union(all []model.Range) []model.Range {
	slices.SortFunc(all, func(a, b model.Range) int {
		return cmp.Or(a.First.Compare(b.First), a.Last.Compare(b.Last))
	})
	var out []model.Range
	for _, r := range all {
		if n := len(out); n > 0 && out[n-1].Last.BitLen() == r.First.BitLen() {
			last := &out[n-1]
			if next := last.Last.Next(); !next.IsValid() || r.First.Compare(next) <= 0 {
				if r.Last.Compare(last.Last) > 0 {
					last.Last = r.Last
				}
				continue
			}
		}
		out = append(out, r)
	}
	return out
}
