package model_test

import (
	"net/netip"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// FuzzPolicy has policies of any content: rules are in canonical form, and a change to the
// policy and back leads to where it began.
func FuzzPolicy(f *testing.F) {
	for _, spec := range []string{
		"podSelector: {}\ningress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}], ports: [{port: 80, endPort: 90}, {port: http}]}]",
		"podSelector: {matchExpressions: [{key: a, operator: Like}]}\negress: [{to: [{namespaceSelector: {}, podSelector: {matchLabels: {a: b}}}, {}]}]",
		"tier: Admin\nsubject: {pods: {}}\negress: [{action: Pass, to: [{networks: ['::/0']}], protocols: [{destinationNamedPort: x}, {}]}]",
	} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		np, cnp := &networkingv1.NetworkPolicy{}, &v1alpha2.ClusterNetworkPolicy{}
		_ = yaml.Unmarshal(text, &np.Spec)
		_ = yaml.Unmarshal(text, &cnp.Spec)
		np.Namespace, np.Name, cnp.Name = "shop", "p", "c"
		w := newWorld(t, pod("a 10.0.0.1 a=b"))
		for range 2 {
			w.model.SetPolicy(model.ParsePolicy(np))
			w.model.SetClusterPolicy(model.ParseClusterPolicy(cnp))
			w.refresh()
			for _, p := range w.Policies {
				for _, rules := range p.Rules {
					for i := range rules {
						canonical(t, &rules[i])
					}
				}
			}
			w.delete(policy("p", ""), "ClusterNetworkPolicy c {}")
			if len(w.Policies)+len(w.Sets) > 0 {
				t.Errorf("left: %v, %v", w.Policies, w.Sets)
			}
		}
	})
}

// canonical checks what types.go promises of a rule.
func canonical(t *testing.T, r *model.Rule) {
	t.Helper()
	if r.Any && len(r.Pods)+len(r.Blocks) > 0 || r.AllPorts && len(r.Ports)+len(r.NamedPorts) > 0 {
		t.Errorf("rule %+v matches everything and something", r)
	}
	var last netip.Addr
	for _, b := range r.Blocks {
		if b.Last.Less(b.First) || last.IsValid() && last.BitLen() == b.First.BitLen() && !last.Next().Less(b.First) {
			t.Errorf("blocks %v", r.Blocks)
		}
		last = b.Last
	}
	var before model.PortRange
	for _, p := range r.Ports {
		if p.Last < p.First || p.Protocol < before.Protocol || p.Protocol == before.Protocol && (before.First == 0 || int(p.First) <= int(before.Last)+1) {
			t.Errorf("ports %v", r.Ports)
		}
		before = p
	}
}
