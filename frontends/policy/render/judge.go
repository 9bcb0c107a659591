package render

import (
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// Judge decides flows like the rules of the last Update. local reports the node's own addresses
// besides its Node object. Flows of other families are allowed.
func (r *Renderer) Judge(f judge.Flow, local func(netip.Addr) bool) judge.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if t.has(f.Source) {
			return t.judge(r.node.Addresses, local).Flow(f)
		}
	}
	v := judge.Verdict{Allowed: true}
	for d := range v.Ends {
		v.Ends[d] = judge.Decision{Allowed: true, Reason: judge.NoPod}
	}
	return v
}

func (t *table) judge(node []netip.Addr, local func(netip.Addr) bool) *judge.Judge {
	state := enforced{t}
	j := &judge.Judge{State: state, Local: func(a netip.Addr) bool { return slices.Contains(node, a) || local(a) }}
	if len(t.cidrs) > 0 {
		j.Unknown = state.unknown
	}
	return j
}

// enforced is in force once the last update is.
type enforced struct{ *table }

// Pod implements judge.State.
func (e enforced) Pod(a netip.Addr) *model.Pod { return e.pods[e.owners[at(a)]] }

// Rules implements judge.State.
func (e enforced) Rules(id model.PolicyID, d model.Direction) ([]model.Rule, bool) {
	p := e.policies[id]
	if p == nil {
		return nil, false
	}
	if _, refused := e.refused[policyLookup{id, lookup(d)}]; refused {
		return nil, false
	}
	return p.Rules[d], true
}

// Contains implements judge.State.
func (e enforced) Contains(id model.SetID, m model.Member) (member, known bool) {
	o := e.sets[id]
	if o == nil {
		return false, false
	}
	return o.members.state[m]&inModel != 0, true
}

func (e enforced) unknown(a netip.Addr) bool {
	return e.owners[at(a)] == "" && slices.ContainsFunc(e.cidrs, func(r model.Range) bool { return !a.Less(r.First) && !r.Last.Less(a) })
}
