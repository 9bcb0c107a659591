package localstate

import (
	"fmt"

	"github.com/weft-proxy/weft/frontends/policy/localstate/statepb"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// maxWeight limits the rules, members and other objects of a response, unless a single policy has
// more. It keeps messages far below the limit of gRPC.
const maxWeight = 1 << 14

// responses returns the messages of a state, at least one. They remove the objects of names that
// the state lacks.
func responses(s *State, names *Names, dropLog uint32) []*statepb.WatchResponse {
	b := builder{out: []*statepb.WatchResponse{{}}}
	first := b.out[0]
	if names.Node {
		first.Node, first.DropLog = nodeProto(&s.Node), dropLog
	}
	have := s.names()
	for _, uid := range missing(names.Pods, have.Pods) {
		first.RemovedPods = append(first.RemovedPods, string(uid))
	}
	for _, id := range missing(names.Policies, have.Policies) {
		first.RemovedPolicies = append(first.RemovedPolicies, policyName(id))
	}
	for _, id := range missing(names.Sets, have.Sets) {
		first.RemovedSets = append(first.RemovedSets, string(id))
	}
	for i := range s.Pods {
		m := b.room(1)
		m.Pods = append(m.Pods, podProto(&s.Pods[i]))
	}
	for i := range s.Policies {
		p := &s.Policies[i]
		m := b.room(1 + len(p.Rules[model.Ingress]) + len(p.Rules[model.Egress]))
		m.Policies = append(m.Policies, policyProto(p))
	}
	for i := range s.Sets {
		b.set(&s.Sets[i])
	}
	last := b.out[len(b.out)-1]
	last.Synced, last.Counters = true, s.Counters.proto()
	return b.out
}

func (s *State) names() Names {
	var n Names
	for _, p := range s.Pods {
		n.Pods = append(n.Pods, p.UID)
	}
	for i := range s.Policies {
		n.Policies = append(n.Policies, s.Policies[i].ID)
	}
	for i := range s.Sets {
		n.Sets = append(n.Sets, s.Sets[i].ID)
	}
	return n
}

func missing[T comparable](names, have []T) (out []T) {
	in := make(map[T]struct{}, len(have))
	for _, n := range have {
		in[n] = struct{}{}
	}
	for _, n := range names {
		if _, ok := in[n]; !ok {
			out = append(out, n)
		}
	}
	return out
}

type builder struct {
	out    []*statepb.WatchResponse
	weight int
}

func (b *builder) room(weight int) *statepb.WatchResponse {
	if b.weight > 0 && b.weight+weight > maxWeight {
		b.out, b.weight = append(b.out, &statepb.WatchResponse{}), 0
	}
	b.weight += weight
	return b.out[len(b.out)-1]
}

func (b *builder) set(s *Set) {
	members := s.Members
	for first := true; first || len(members) > 0; first = false {
		n := min(len(members), maxWeight-1)
		out := &statepb.Set{Id: string(s.ID), Ports: s.Ports, Comment: s.Comment, Size: size(s.Size), Continued: !first, Outcome: s.Outcome.Proto()}
		for _, m := range members[:n] {
			out.Members = append(out.Members, &statepb.Member{Address: m.Addr.AsSlice(), Protocol: uint32(m.Protocol), Port: uint32(m.Port)})
		}
		members = members[n:]
		to := b.room(1 + n)
		to.Sets = append(to.Sets, out)
	}
}

func nodeProto(n *model.Node) *statepb.Node {
	return &statepb.Node{Name: n.Name, Addresses: texts(n.Addresses), PodCidrs: texts(n.PodCIDRs)}
}

func texts[T fmt.Stringer](in []T) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = v.String()
	}
	return out
}

func policyName(id model.PolicyID) *statepb.PolicyName {
	return &statepb.PolicyName{Tier: tiers[id.Tier], Namespace: id.Namespace, Name: id.Name}
}

func policyNames(ids []model.PolicyID) []*statepb.PolicyName {
	out := make([]*statepb.PolicyName, len(ids))
	for i, id := range ids {
		out[i] = policyName(id)
	}
	return out
}

var (
	tiers = map[model.Tier]statepb.Tier{
		model.TierAdmin: statepb.Tier_TIER_ADMIN, model.TierNetworkPolicy: statepb.Tier_TIER_NETWORK_POLICY, model.TierBaseline: statepb.Tier_TIER_BASELINE,
	}
	actions = map[model.Action]statepb.Action{
		model.Accept: statepb.Action_ACTION_ACCEPT, model.Deny: statepb.Action_ACTION_DENY, model.Pass: statepb.Action_ACTION_PASS,
	}
)

func podProto(p *Pod) *statepb.Pod {
	return &statepb.Pod{
		Uid: string(p.UID), Namespace: p.Name.Namespace, Name: p.Name.Name, Addresses: texts(p.Addresses),
		Ingress: policyNames(p.Policies[model.Ingress]), Egress: policyNames(p.Policies[model.Egress]), Outcome: p.Outcome.Proto(), Interface: p.Link.Name,
	}
}

func policyProto(p *Policy) *statepb.Policy {
	return &statepb.Policy{
		Name: policyName(p.ID), Priority: p.Priority, Pods: size(p.Pods), Problems: p.Problems, Outcome: p.Outcome.Proto(),
		Ingress: rulesProto(p.Rules[model.Ingress]), Egress: rulesProto(p.Rules[model.Egress]),
	}
}

func rulesProto(rules []model.Rule) []*statepb.Rule {
	out := make([]*statepb.Rule, len(rules))
	for i := range rules {
		r := &rules[i]
		m := &statepb.Rule{
			Name: r.Name, Action: actions[r.Action], Any: r.Any, AllPorts: r.AllPorts, Pods: setIDs(r.Pods), NamedPorts: setIDs(r.NamedPorts),
		}
		for _, b := range r.Blocks {
			m.Blocks = append(m.Blocks, rangeText(b))
		}
		for _, p := range r.Ports {
			m.Ports = append(m.Ports, &statepb.PortRange{Protocol: uint32(p.Protocol), First: uint32(p.First), Last: uint32(p.Last)})
		}
		out[i] = m
	}
	return out
}

func setIDs(ids []model.SetID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// rangeText returns a range as "10.0.0.0-10.0.0.255", a single address as itself.
func rangeText(r model.Range) string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

func (c *Counters) proto() *statepb.Counters {
	return &statepb.Counters{
		Revision: c.Revision, Pods: uint64(size(c.Pods)), Namespaces: uint64(size(c.Namespaces)),
		Policies: uint64(size(c.Policies)), LocalPods: uint64(size(c.LocalPods)),
	}
}

func size(n int) uint32 { return uint32(max(0, n)) } //nolint:gosec // it counts objects in memory
