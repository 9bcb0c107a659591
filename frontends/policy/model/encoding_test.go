package model

import (
	"net/netip"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestUnreadableRules has a policy whose stored rules cannot be read: it isolates the pods that
// it selects, and accepts nothing.
func TestUnreadableRules(t *testing.T) {
	o := ParsePolicy(&networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec:       networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}},
	})
	if rules := o.rules().policy.Rules[Ingress]; len(rules) != 1 || !rules[0].Any {
		t.Fatalf("rules %+v", rules)
	}
	for _, spec := range [][]byte{{0xff}, o.spec[:1]} {
		o.spec = spec
		m := New(Config{NodeName: "node"})
		m.SetPolicy(o)
		m.SetPod(&PodObject{podFacts: podFacts{name: types.NamespacedName{Namespace: "shop", Name: "a"}, uid: "a", node: "node", addrs: [2]netip.Addr{netip.MustParseAddr("10.0.0.1")}}})
		c := m.Refresh()
		if len(c.Pods) != 1 || len(c.Pods[0].New.Policies[Ingress]) != 1 {
			t.Errorf("%x: the pod is not isolated: %+v", spec, c.Pods)
		}
		if len(c.Policies) != 1 || len(c.Policies[0].New.Rules[Ingress]) != 0 {
			t.Errorf("%x: the policy accepts something: %+v", spec, c.Policies)
		}
	}
}
