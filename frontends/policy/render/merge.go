package render

import (
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// Beyond manyRules, the rules of a NetworkPolicy are merged and dispatched.
const manyRules = 100

// merge joins rules with equal ports. Their order does not matter, because all accept.
func merge(rules []model.Rule) []model.Rule {
	var out []model.Rule
	at := make(map[string]int)
	counts := make([]int, 0, len(rules))
	for i := range rules {
		r := &rules[i]
		ports := fmt.Sprintf("%v %d %q", r.AllPorts, r.Ports, r.NamedPorts)
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
		m.Blocks = model.MergeRanges(m.Blocks)
	}
	return out
}
