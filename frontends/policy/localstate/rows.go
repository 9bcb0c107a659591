package localstate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
)

// Pod is a row of TablePods.
type Pod struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	UID       string   `json:"uid"`
	Addresses []string `json:"addresses"`
	// Interface is the host's end, empty if unknown.
	Interface string `json:"interface,omitempty"`
	// "namespace/name" or "name", in the order of decision.
	Ingress []string `json:"ingressPolicies"`
	Egress  []string `json:"egressPolicies"`
	// Isolated has "ingress" and "egress" if a NetworkPolicy applies.
	Isolated []string `json:"isolated"`
	publish.OutcomeRow
}

// Text returns "namespace/name".
func (p *Pod) Text() string { return p.Namespace + "/" + p.Name }

// Policy is a row of TablePolicies.
type Policy struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Tier is "Admin", "NetworkPolicy" or "Baseline".
	Tier string `json:"tier"`
	// Nil for a NetworkPolicy.
	Priority *int32 `json:"priority,omitempty"`
	// Pods are local, as "namespace/name".
	Pods []string `json:"pods"`
	// "ingress" and "egress" if it applies to a pod.
	Directions []string `json:"directions"`
	publish.OutcomeRow
	// Problems are the invalid parts.
	Problems []string `json:"problems,omitempty"`
	Ingress  []Rule   `json:"ingress,omitempty"`
	Egress   []Rule   `json:"egress,omitempty"`
}

// Text returns "namespace/name", or "name" for a ClusterNetworkPolicy.
func (p *Policy) Text() string { return strings.TrimPrefix(p.Namespace+"/"+p.Name, "/") }

// Rule is a rule of a Policy.
type Rule struct {
	Name string `json:"name"`
	// Action is "accept", "deny" or "pass".
	Action string `json:"action"`
	// AnyAddress means everyone, Pods describe sets, Addresses are ranges.
	AnyAddress bool     `json:"anyAddress,omitempty"`
	Pods       []string `json:"pods,omitempty"`
	Addresses  []string `json:"addresses,omitempty"`
	// Ports are like "tcp 80-90", or describe named ports.
	AllPorts bool     `json:"allPorts,omitempty"`
	Ports    []string `json:"ports,omitempty"`
}

// Node is the row of TableNode.
type Node struct {
	Name      string         `json:"name"`
	Addresses []netip.Addr   `json:"addresses"`
	PodCIDRs  []netip.Prefix `json:"podCIDRs"`
	// Dropped packets logged per second for each set of policies; 0 disables the log.
	DropLog int `json:"dropLog"`
	// Of the cluster.
	Pods       int `json:"pods"`
	Namespaces int `json:"namespaces"`
	Policies   int `json:"policies"`
}

var (
	tierTexts   = [...]string{model.TierAdmin: "Admin", model.TierNetworkPolicy: "NetworkPolicy", model.TierBaseline: "Baseline"}
	actionTexts = [...]string{model.Accept: "accept", model.Deny: "deny", model.Pass: "pass"}
)

func (p *PodState) row() *Pod {
	out := &Pod{
		Namespace: p.Name.Namespace, Name: p.Name.Name, UID: string(p.UID), Addresses: texts(p.Addresses, netip.Addr.String), Interface: p.Link.Name,
		Ingress: texts(p.Policies[model.Ingress], policyText), Egress: texts(p.Policies[model.Egress], policyText), Isolated: []string{}, OutcomeRow: p.Outcome.Row(),
	}
	for d, ids := range p.Policies {
		if len(model.OfTier(ids, model.TierNetworkPolicy)) > 0 {
			out.Isolated = append(out.Isolated, model.Direction(d).String()) //nolint:gosec // one of two
		}
	}
	return out
}

func (s *State) pods() []*Pod {
	out := make([]*Pod, len(s.Pods))
	for i := range s.Pods {
		out[i] = s.Pods[i].row()
	}
	slices.SortFunc(out, func(a, b *Pod) int { return strings.Compare(a.Text()+"/"+a.UID, b.Text()+"/"+b.UID) })
	return out
}

func (s *State) policies() []*Policy {
	sets := make(map[model.SetID]string)
	for i := range s.Sets {
		sets[s.Sets[i].ID] = s.Sets[i].Comment
	}
	byID := make(map[model.PolicyID]*Policy)
	out := make([]*Policy, len(s.Policies))
	for i := range s.Policies {
		p := &s.Policies[i]
		out[i] = &Policy{
			Namespace: p.ID.Namespace, Name: p.ID.Name, Tier: tierTexts[p.ID.Tier], Pods: []string{}, Directions: []string{}, OutcomeRow: p.Outcome.Row(), Problems: p.Problems,
			Ingress: rules(p.Rules[model.Ingress], sets), Egress: rules(p.Rules[model.Egress], sets),
		}
		if p.ID.Tier != model.TierNetworkPolicy {
			out[i].Priority = new(p.Priority)
		}
		byID[p.ID] = out[i]
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		for d, ids := range pod.Policies {
			direction, text := model.Direction(d).String(), pod.Name.String() //nolint:gosec // one of two
			for _, id := range ids {
				p := byID[id]
				if p == nil {
					continue
				}
				if !slices.Contains(p.Directions, direction) {
					p.Directions = append(p.Directions, direction)
				}
				if n := len(p.Pods); n == 0 || p.Pods[n-1] != text {
					p.Pods = append(p.Pods, text)
				}
			}
		}
	}
	for _, p := range out {
		slices.Sort(p.Directions)
		slices.Reverse(p.Directions)
	}
	return out
}

func rules(in []model.Rule, sets map[model.SetID]string) []Rule {
	described := func(id model.SetID) string { return sets[id] }
	return texts(in, func(r model.Rule) Rule {
		return Rule{
			Name: r.Name, Action: actionTexts[r.Action], AnyAddress: r.Any, Addresses: texts(r.Blocks, rangeText), AllPorts: r.AllPorts,
			Pods: texts(r.Pods, described), Ports: slices.Concat(texts(r.Ports, portText), texts(r.NamedPorts, described)),
		}
	})
}

func texts[T, R any](in []T, text func(T) R) []R {
	out := make([]R, len(in))
	for i, v := range in {
		out[i] = text(v)
	}
	return out
}

func policyText(id model.PolicyID) string { return strings.TrimPrefix(id.Namespace+"/"+id.Name, "/") }

func rangeText(r model.Range) string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

// portText returns "tcp 80-90", "tcp 80" or "tcp".
func portText(p model.PortRange) string {
	switch {
	case p.First == 0 && p.Last == 0:
		return p.Protocol.String()
	case p.First == p.Last:
		return fmt.Sprintf("%s %d", p.Protocol, p.First)
	default:
		return fmt.Sprintf("%s %d-%d", p.Protocol, p.First, cmp.Or(p.Last, p.First))
	}
}
