package judge

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// State is the enforced state of an IP family.
type State interface {
	// Pod returns the pod of this node with an address, or nil.
	Pod(netip.Addr) *model.Pod
	// Rules returns the rules in the order of decision, false for a policy that is left out.
	Rules(model.PolicyID, model.Direction) ([]model.Rule, bool)
	// Contains reports whether a set has a member, and whether the set is known.
	Contains(model.SetID, model.Member) (member, known bool)
}

// Judge decides flows.
type Judge struct {
	// Required.
	State State
	// Local reports the node's own addresses. Required.
	Local func(netip.Addr) bool
	// Unknown reports addresses without a known pod in a pod range of this node; may be nil.
	Unknown func(netip.Addr) bool
}

// Flow decides a flow.
func (j *Judge) Flow(f Flow) Verdict {
	var v Verdict
	switch {
	case j.Local(f.Source):
		node := Decision{Allowed: true, Reason: FromNode}
		v.Ends = [model.NumDirections]Decision{node, node}
	case j.Unknown != nil && !j.Local(f.Destination) && j.unknown(f, &v):
	default:
		for d := range model.NumDirections {
			v.Ends[d] = j.end(f, d)
		}
	}
	v.Allowed = v.Ends[model.Egress].Allowed && v.Ends[model.Ingress].Allowed
	return v
}

// unknown denies at ends in pod ranges without a known pod, and reports such an end.
func (j *Judge) unknown(f Flow, v *Verdict) bool {
	found := false
	for d, a := range [model.NumDirections]netip.Addr{model.Ingress: f.Destination, model.Egress: f.Source} {
		v.Ends[d] = Decision{Allowed: true, Reason: NoPod}
		if j.Unknown(a) {
			v.Ends[d] = Decision{Reason: Unknown}
			found = true
		}
	}
	return found
}

// end decides by the policies of the pod at d's end.
func (j *Judge) end(f Flow, d model.Direction) Decision {
	addr := f.Destination
	if d == model.Egress {
		addr = f.Source
	}
	pod := j.State.Pod(addr)
	if pod == nil {
		return Decision{Allowed: true, Reason: NoPod}
	}
	decision := j.decide(f, d, pod.Policies[d])
	decision.Pod = pod.Name
	return decision
}

// decide asks the tier Admin, then NetworkPolicies, which are final if any apply, then the tier
// Baseline. ids are in this order.
func (j *Judge) decide(f Flow, d model.Direction, ids []model.PolicyID) Decision {
	rest, decision, ok := j.tier(f, d, ids, model.TierAdmin)
	switch {
	case ok:
		return decision
	case f.Source == f.Destination:
		return Decision{Allowed: true, Reason: Self}
	}
	isolated := len(rest) > 0 && rest[0].Tier == model.TierNetworkPolicy
	if rest, decision, ok = j.tier(f, d, rest, model.TierNetworkPolicy); ok {
		return decision
	}
	if isolated {
		return Decision{Reason: Isolated}
	}
	if _, decision, ok = j.tier(f, d, rest, model.TierBaseline); ok {
		return decision
	}
	return Decision{Allowed: true, Reason: NoPolicy}
}

// tier decides by the policies of t, which come first in ids; ok is false if no rule decides.
func (j *Judge) tier(f Flow, d model.Direction, ids []model.PolicyID, t model.Tier) (rest []model.PolicyID, decision Decision, ok bool) {
	of := model.OfTier(ids, t)
	rest = ids[len(of):]
	for _, id := range of {
		rules, known := j.State.Rules(id, d)
		if !known && t != model.TierNetworkPolicy {
			return nil, Decision{Reason: LeftOut, Policy: id}, true
		}
		for i := range rules {
			r := &rules[i]
			if !j.matches(r, f, d) {
				continue
			}
			switch r.Action {
			case model.Accept, model.Deny:
				return nil, Decision{Allowed: r.Action == model.Accept, Reason: ByRule, Policy: id, Rule: r.Name}, true
			case model.Pass:
				return rest, Decision{}, false
			default:
				panic(fmt.Sprintf("judge: action %d", r.Action))
			}
		}
	}
	return rest, Decision{}, false
}

// matches is for a rule of the pod at d's end.
func (j *Judge) matches(r *model.Rule, f Flow, d model.Direction) bool {
	peer := f.Source
	if d == model.Egress {
		peer = f.Destination
	}
	return j.matchesPeer(r, peer) && j.matchesPort(r, f)
}

func (j *Judge) matchesPeer(r *model.Rule, peer netip.Addr) bool {
	if r.Any {
		return true
	}
	for _, id := range r.Pods {
		if j.contains(r, id, model.Member{Addr: peer}) {
			return true
		}
	}
	return slices.ContainsFunc(r.Blocks, func(b model.Range) bool {
		return b.First.BitLen() == peer.BitLen() && !peer.Less(b.First) && !b.Last.Less(peer)
	})
}

func (j *Judge) matchesPort(r *model.Rule, f Flow) bool {
	if r.AllPorts {
		return true
	}
	for _, p := range r.Ports {
		if p.Protocol == f.Protocol && (p.First == 0 && p.Last == 0 || p.First <= f.Port && f.Port <= p.Last) {
			return true
		}
	}
	for _, id := range r.NamedPorts {
		if j.contains(r, id, model.Member{Addr: f.Destination, Protocol: f.Protocol, Port: f.Port}) {
			return true
		}
	}
	return false
}

// contains is true for a denying rule if the set is unknown.
func (j *Judge) contains(r *model.Rule, id model.SetID, m model.Member) bool {
	member, known := j.State.Contains(id, m)
	return member || !known && r.Action == model.Deny
}
