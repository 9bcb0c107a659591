package judge_test

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// fake is a state that a test writes, with policies for ingress.
type fake struct {
	pods     map[netip.Addr]*model.Pod
	policies policies
	sets     map[model.SetID]map[model.Member]bool
}

type policies map[model.PolicyID][]model.Rule

func (s *fake) Pod(a netip.Addr) *model.Pod { return s.pods[a] }

func (s *fake) Rules(id model.PolicyID, _ model.Direction) ([]model.Rule, bool) {
	rules, ok := s.policies[id]
	return rules, ok
}

func (s *fake) Contains(id model.SetID, m model.Member) (member, known bool) {
	set, known := s.sets[id]
	return set[m], known
}

var (
	admin    = model.PolicyID{Tier: model.TierAdmin, Name: "a"}
	second   = model.PolicyID{Tier: model.TierAdmin, Name: "b"}
	shop     = model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "db"}
	baseline = model.PolicyID{Tier: model.TierBaseline, Name: "c"}

	node   = netip.MustParseAddr("192.0.2.1")
	client = netip.MustParseAddr("10.0.0.1")
	server = netip.MustParseAddr("10.0.0.2")
	range1 = []model.Range{{First: netip.MustParseAddr("10.0.0.0"), Last: netip.MustParseAddr("10.0.0.255")}}
)

// newFake has a pod with policies for ingress at the server; the client is not a pod of this node.
func newFake(all policies, ids ...model.PolicyID) *fake {
	pod := &model.Pod{Name: types.NamespacedName{Namespace: "shop", Name: "db-0"}, Addresses: []netip.Addr{server}}
	pod.Policies[model.Ingress] = ids
	return &fake{
		pods: map[netip.Addr]*model.Pod{server: pod}, policies: all,
		sets: map[model.SetID]map[model.Member]bool{
			"clients": {{Addr: client}: true}, "others": {},
			"http": {{Addr: server, Protocol: model.TCP, Port: 80}: true},
		},
	}
}

// TestFlow decides a TCP connection from the client to port 80 of the server.
func TestFlow(t *testing.T) {
	all := model.Rule{Any: true, AllPorts: true}
	with := func(a model.Action, r model.Rule) []model.Rule {
		r.Action, r.Name = a, "ingress[0]"
		return []model.Rule{r}
	}
	accept := func(r model.Rule) policies { return policies{shop: with(model.Accept, r)} }
	tests := []struct {
		name     string
		ids      []model.PolicyID
		policies policies
		want     string
	}{
		{"no policy", nil, nil, "allowed: not isolated"},
		{"isolated", []model.PolicyID{shop}, policies{shop: nil}, "denied: isolated"},
		{"left out", []model.PolicyID{shop}, nil, "denied: isolated"},
		{"left out in the tier Admin", []model.PolicyID{admin, shop}, nil, "denied: left out"},
		{"left out in the tier Baseline", []model.PolicyID{baseline}, nil, "denied: left out"},
		{"accepted", []model.PolicyID{shop}, accept(all), "allowed: by a rule of NetworkPolicy shop/db ingress[0]"},
		{"by a set", []model.PolicyID{shop}, accept(model.Rule{Pods: []model.SetID{"others", "clients"}, NamedPorts: []model.SetID{"http"}}), "allowed: by a rule"},
		{"not in a set", []model.PolicyID{shop}, accept(model.Rule{Pods: []model.SetID{"others", "unknown"}, AllPorts: true}), "denied: isolated"},
		{"by a range", []model.PolicyID{shop}, accept(model.Rule{Blocks: range1, Ports: []model.PortRange{{Protocol: model.UDP}, {Protocol: model.TCP, First: 79, Last: 81}}}), "allowed: by a rule"},
		{"another port", []model.PolicyID{shop}, accept(model.Rule{Any: true, Ports: []model.PortRange{{Protocol: model.TCP, First: 81, Last: 90}}}), "denied: isolated"},
		{"a whole protocol", []model.PolicyID{shop}, accept(model.Rule{Any: true, Ports: []model.PortRange{{Protocol: model.TCP}}}), "allowed: by a rule"},
		{"denied by the tier Admin", []model.PolicyID{admin, shop},
			policies{admin: with(model.Deny, model.Rule{Pods: []model.SetID{"unknown"}, NamedPorts: []model.SetID{"unknown"}}), shop: with(model.Accept, all)}, "denied: by a rule of ClusterNetworkPolicy /a ingress[0]"},
		{"passed to NetworkPolicies", []model.PolicyID{admin, second, shop},
			policies{admin: with(model.Pass, all), second: with(model.Deny, all), shop: with(model.Accept, all)}, "allowed: by a rule of NetworkPolicy"},
		{"a NetworkPolicy is final", []model.PolicyID{shop, baseline}, policies{shop: nil, baseline: with(model.Accept, all)}, "denied: isolated"},
		{"the tier Baseline", []model.PolicyID{baseline}, policies{baseline: with(model.Deny, all)}, "denied: by a rule of ClusterNetworkPolicy /c"},
	}
	local := func(a netip.Addr) bool { return a == node }
	flow := judge.Flow{Source: client, Destination: server, Protocol: model.TCP, Port: 80}
	for _, test := range tests {
		j := &judge.Judge{State: newFake(test.policies, test.ids...), Local: local}
		v := j.Flow(flow)
		if got := v.Ends[model.Ingress]; !strings.HasPrefix(got.String(), test.want) || v.Allowed != got.Allowed || got.Pod.Name != "db-0" {
			t.Errorf("%s: %s of pod %s, want %s", test.name, v, got.Pod, test.want)
		}
		if got := v.Ends[model.Egress]; got.Reason != judge.NoPod {
			t.Errorf("%s: egress %s", test.name, got)
		}
		if v := j.Flow(judge.Flow{Source: node, Destination: server}); !v.Allowed || v.Ends[model.Ingress].Reason != judge.FromNode {
			t.Errorf("%s: from the node: %s", test.name, v)
		}
	}
}

// TestUnknown has addresses at which no pod is known yet.
func TestUnknown(t *testing.T) {
	unknown := netip.MustParseAddr("10.0.0.9")
	j := &judge.Judge{
		State: newFake(nil), Local: func(a netip.Addr) bool { return a == node },
		Unknown: func(a netip.Addr) bool { return a == unknown },
	}
	for _, test := range []struct {
		from, to netip.Addr
		want     string
	}{
		{unknown, server, "denied: egress denied: no pod is known at this address; ingress allowed: not a pod of this node"},
		{client, unknown, "denied: egress allowed: not a pod of this node; ingress denied: no pod is known at this address"},
		{unknown, node, "allowed: egress allowed: not a pod of this node; ingress allowed: not a pod of this node"},
		{node, unknown, "allowed: egress allowed: the flow comes from this node; ingress allowed: the flow comes from this node"},
		{server, server, "allowed: egress allowed: a pod reaches itself; ingress allowed: a pod reaches itself"},
	} {
		if got := j.Flow(judge.Flow{Source: test.from, Destination: test.to}).String(); got != test.want {
			t.Errorf("%s > %s: %s", test.from, test.to, got)
		}
	}
}
