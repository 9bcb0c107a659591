package render

import (
	"cmp"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// maxDispatched limits the rules of all chains: rules with overlapping ranges are in several.
const maxDispatched = 200_000

// large joins rules with equal ports and dispatches by port.
func (b *chainBuilder) large(of model.PolicyID, rules []model.Rule) {
	rules = merge(rules)
	if len(rules) <= manyRules {
		b.all(of, rules)
		return
	}
	rest := make([]model.Rule, 0, len(rules))
	byPort := make([]model.Rule, len(rules))
	for i, r := range rules {
		byPort[i], r.Ports = r, nil
		if r.AllPorts || len(r.NamedPorts) > 0 {
			rest = append(rest, r)
		}
	}
	for _, p := range protocols {
		spans, ok := portSpans(byPort, p)
		if !ok {
			b.all(of, onlyPorts(byPort, p))
			continue
		}
		if len(spans) > 0 {
			b.dispatch(of, p, byPort, spans)
		}
	}
	b.all(of, rest)
}

func (b *chainBuilder) all(of model.PolicyID, rules []model.Rule) {
	for i := range rules {
		b.rule(of, &rules[i])
	}
}

func onlyPorts(rules []model.Rule, p model.Protocol) (out []model.Rule) {
	for _, r := range rules {
		if r.Ports = portRanges(r.Ports, p); len(r.Ports) > 0 {
			r.NamedPorts = nil
			out = append(out, r)
		}
	}
	return out
}

type portSpan struct {
	first, last int
	rules       []int
}

// ok is false for too many rules.
func portSpans(rules []model.Rule, p model.Protocol) (out []portSpan, ok bool) {
	type edge struct {
		at, rule int
		start    bool
	}
	var edges []edge
	for i := range rules {
		for _, r := range portRanges(rules[i].Ports, p) {
			edges = append(edges, edge{int(r.First), i, true}, edge{int(r.Last) + 1, i, false})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var active []int
	from, total := 0, 0
	for i := 0; i < len(edges); {
		at := edges[i].at
		if len(active) > 0 {
			out = append(out, portSpan{from, at - 1, slices.Clone(active)})
			if total += len(active); total > maxDispatched {
				return nil, false
			}
		}
		for ; i < len(edges) && edges[i].at == at; i++ {
			n, found := slices.BinarySearch(active, edges[i].rule)
			switch {
			case edges[i].start && !found:
				active = slices.Insert(active, n, edges[i].rule)
			case !edges[i].start && found:
				active = slices.Delete(active, n, n+1)
			}
		}
		from = at
	}
	return out, true
}

func (b *chainBuilder) dispatch(of model.PolicyID, p model.Protocol, rules []model.Rule, spans []portSpan) {
	var needs []*object
	var elements []*weftv1.Element
	texts := []string{"dispatch"}
	for _, s := range spans {
		sub := &chainBuilder{table: b.table, lookup: b.lookup}
		matching := make([]model.Rule, len(s.rules))
		for n, i := range s.rules {
			matching[n] = rules[i]
			matching[n].AllPorts, matching[n].Ports, matching[n].NamedPorts = true, nil, nil
		}
		if len(matching) > manyRules {
			matching = merge(matching)
		}
		sub.all(of, matching)
		if len(sub.rules) == 0 {
			continue
		}
		key := portText(model.PortRange{First: uint16(s.first), Last: uint16(s.last)}) //nolint:gosec // at most maxPort
		chain := sub.chain("ports", "", policyName(of)+" "+p.String()+" "+key)
		needs = append(needs, chain)
		elements = append(elements, &weftv1.Element{Key: key, Value: "jump " + chain.name})
		texts = append(texts, key, chain.name)
	}
	if len(elements) == 0 {
		return
	}
	m := b.intern(identify(texts...), "dispatch", "", func(name string) *object {
		return &object{
			content:  &weftv1.Set{Name: name, Type: portType + " : verdict", Flags: []string{"interval"}, Elements: elements},
			verdicts: true, needs: needs, owners: []model.PolicyID{of},
		}
	})
	b.add(of, "", match{text: "meta l4proto " + p.String() + " " + b.lookup.port() + " vmap @" + m.name, need: m})
}
