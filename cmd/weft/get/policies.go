package get

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/policy/localstate/statepb"
)

func newPoliciesCmd() *cobra.Command {
	return policies.command(&cobra.Command{
		Use:     "policies [[NAMESPACE/]NAME]",
		Short:   "Show the network policies that apply to pods of this node: pods, rules, and whether they are in force",
		Example: "  weft get policies\n  weft get policies shop/client -o yaml\n  weft get policies -w",
		Long: `Show the NetworkPolicies and ClusterNetworkPolicies that apply to pods of this
node, in the order in which they decide. INGRESS and EGRESS are the numbers of
rules, or "-" if the policy does not apply in that direction.
` + aboutState + `
A policy that is refused or left out accepts nothing. "(invalid parts)" says that parts
of the policy are not valid, and match nothing. Lines on the standard error have the
reasons. With -o json the rules are shown.`,
		Args: cobra.MaximumNArgs(1),
	}, policies.complete)
}

var policies = policyKind(viewPolicies, (*policyView).text, "no such policy applies to a pod", policyRows)

// policyView is a policy in JSON and YAML.
type policyView struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Tier      string `json:"tier"`
	Priority  *int32 `json:"priority,omitempty"`
	// pods of this node, as "namespace/name"
	Pods []string `json:"pods"`
	outcomeView
	// invalid parts
	Problems []string   `json:"problems,omitempty"`
	Ingress  []ruleView `json:"ingress,omitempty"`
	Egress   []ruleView `json:"egress,omitempty"`

	// directions in which the policy applies to a pod
	appliesIngress, appliesEgress bool
}

func viewPolicies(state *statepb.WatchResponse) []*policyView {
	sets := make(map[string]string)
	for _, s := range state.GetSets() {
		sets[s.GetId()] = s.GetComment()
	}
	type key struct {
		tier            statepb.Tier
		namespace, name string
	}
	keyOf := func(n *statepb.PolicyName) key { return key{n.GetTier(), n.GetNamespace(), n.GetName()} }
	byName := make(map[key]*policyView)
	out := make([]*policyView, 0, len(state.GetPolicies()))
	for _, p := range state.GetPolicies() {
		n := p.GetName()
		v := &policyView{
			Namespace: n.GetNamespace(), Name: n.GetName(), Tier: cmp.Or(tierTexts[n.GetTier()], n.GetTier().String()), Pods: []string{}, outcomeView: viewOutcome(p.GetOutcome()), Problems: p.GetProblems(),
			Ingress: viewRules(p.GetIngress(), sets), Egress: viewRules(p.GetEgress(), sets),
		}
		if n.GetTier() != statepb.Tier_TIER_NETWORK_POLICY {
			v.Priority = new(p.GetPriority())
		}
		out = append(out, v)
		byName[keyOf(n)] = v
	}
	for _, p := range state.GetPods() {
		text := p.GetNamespace() + "/" + p.GetName()
		ingress := len(p.GetIngress())
		for i, n := range slices.Concat(p.GetIngress(), p.GetEgress()) {
			v := byName[keyOf(n)]
			if v == nil {
				continue
			}
			v.appliesIngress, v.appliesEgress = v.appliesIngress || i < ingress, v.appliesEgress || i >= ingress
			if len(v.Pods) == 0 || v.Pods[len(v.Pods)-1] != text {
				v.Pods = append(v.Pods, text)
			}
		}
	}
	return out
}

func (v *policyView) text() string { return strings.TrimPrefix(v.Namespace+"/"+v.Name, "/") }

func policyRows(policies []*policyView, _ time.Time) *Rows {
	t := newRows("POLICY", "TIER", "PRIORITY", "PODS", "INGRESS", "EGRESS", "STATE", "REVISION")
	last := lastRevision(policies, func(v **policyView) *outcomeView { return &(*v).outcomeView })
	waits := waiting{names: make(map[string][]string)}
	rules := func(applies bool, rules []ruleView) string {
		if !applies {
			return "-"
		}
		return strconv.Itoa(len(rules))
	}
	for _, v := range policies {
		priority := "-"
		if v.Priority != nil {
			priority = strconv.Itoa(int(*v.Priority))
		}
		state := v.State
		if len(v.Problems) > 0 {
			state += " (invalid parts)"
		}
		t.Add(v.text(), v.Tier, priority, len(v.Pods), rules(v.appliesIngress, v.Ingress), rules(v.appliesEgress, v.Egress), state, v.revision(last))
		waits.add(t, v.text(), &v.outcomeView)
		for _, p := range v.Problems {
			t.note("%s: %s", v.text(), p)
		}
	}
	waits.note(t)
	return t
}

var tierTexts = map[statepb.Tier]string{
	statepb.Tier_TIER_ADMIN:          "Admin",
	statepb.Tier_TIER_NETWORK_POLICY: "NetworkPolicy",
	statepb.Tier_TIER_BASELINE:       "Baseline",
}

// ruleView is a rule of a policy in JSON and YAML.
type ruleView struct {
	Name   string `json:"name"`
	Action string `json:"action"`
	// the other ends: everyone, descriptions of sets of pods, and ranges of addresses
	Any       bool     `json:"anyAddress,omitempty"`
	Pods      []string `json:"pods,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// texts such as "tcp 80-90", and descriptions of named ports
	AllPorts bool     `json:"allPorts,omitempty"`
	Ports    []string `json:"ports,omitempty"`
}

// viewRules describes sets by their comments.
func viewRules(rules []*statepb.Rule, sets map[string]string) []ruleView {
	described := func(id string) string { return sets[id] }
	return cli.Map(rules, func(r *statepb.Rule) ruleView {
		return ruleView{
			Name: r.GetName(), Action: cli.Word(r.GetAction().String(), "ACTION_"), Any: r.GetAny(), Addresses: r.GetBlocks(), AllPorts: r.GetAllPorts(),
			Pods: cli.Map(r.GetPods(), described), Ports: slices.Concat(cli.Map(r.GetPorts(), portText), cli.Map(r.GetNamedPorts(), described)),
		}
	})
}

// portText returns "tcp 80-90", "tcp 80" or "tcp".
func portText(p *statepb.PortRange) string {
	protocols := map[uint32]string{6: "tcp", 17: "udp", 132: "sctp"}
	out := cmp.Or(protocols[p.GetProtocol()], fmt.Sprintf("protocol %d", p.GetProtocol()))
	switch {
	case p.GetFirst() == 0 && p.GetLast() == 0:
		return out
	case p.GetFirst() == p.GetLast():
		return fmt.Sprintf("%s %d", out, p.GetFirst())
	default:
		return fmt.Sprintf("%s %d-%d", out, p.GetFirst(), p.GetLast())
	}
}
