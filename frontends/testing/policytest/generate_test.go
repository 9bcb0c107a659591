package policytest

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

func config(seed uint64) Config {
	return Config{Seed: seed, Nodes: 3, Namespaces: 3, Pods: 9, Policies: 6, ClusterPolicies: 3}
}

// TestChanges replays the changes on a copy of the cluster, which then equals the original,
// and again from the same seed.
func TestChanges(t *testing.T) {
	g, again := New(config(1)), New(config(1))
	mirror := map[any]metav1.Object{}
	replay := func(changes []Change) {
		for _, c := range changes {
			if c.Old != nil {
				delete(mirror, key(c.Old))
			}
			if c.New != nil {
				mirror[key(c.New)] = c.New
			}
		}
	}
	replay(g.Cluster.Objects())
	for i := range 1000 {
		changes := g.Change()
		if !reflect.DeepEqual(changes, again.Change()) {
			t.Fatalf("change %d differs with the same seed", i)
		}
		replay(changes)
	}
	want := map[any]metav1.Object{}
	for _, c := range g.Cluster.Objects() {
		want[key(c.New)] = c.New
	}
	if !reflect.DeepEqual(mirror, want) {
		t.Errorf("replayed changes lead to %d objects, want the %d of the cluster", len(mirror), len(want))
	}
}

type objectKey struct {
	kind reflect.Type
	name types.NamespacedName
}

func key(o metav1.Object) any { return objectKey{reflect.TypeOf(o), namespacedName(o)} }

// TestVariety shows that random clusters allow some flows and deny others, that every part
// of the policies decides some, and that pods never share an address.
func TestVariety(t *testing.T) {
	g := New(config(2))
	seen := map[string]int{}
	for range 200 {
		g.Change()
		owners := map[string]types.NamespacedName{}
		for name, pod := range g.Cluster.Pods {
			for _, addr := range Addresses(pod) {
				if other, ok := owners[addr.String()]; ok {
					t.Fatalf("%s has the address of %s", name, other)
				}
				owners[addr.String()] = name
				if got, ok := g.Cluster.Owner(addr); !ok || got != name {
					t.Fatalf("owner of %s: %s, %t, want %s", addr, got, ok, name)
				}
			}
		}
		e, ends := g.Cluster.Evaluator(), g.Cluster.Ends()
		for range 100 {
			v := e.Evaluate(g.Flow(ends))
			for _, d := range []Decision{v.Egress, v.Ingress} {
				switch {
				case d.Policy == "":
					seen[d.Why]++
				case d.Rule != "":
					seen[d.Policy[:8]+d.Rule[:3]]++
					seen[map[bool]string{true: "allowed by a rule", false: "denied by a rule"}[d.Allowed]]++
				default:
					seen["isolated"]++
				}
			}
		}
	}
	for _, want := range []string{
		"NetworkPing", "NetworkPegr", "ClusterNing", "ClusterNegr", "isolated", "allowed by a rule", "denied by a rule",
		"no policy decides", "the pod itself", "source is the pod's node", "source is not a pod", "destination is not a pod",
	} {
		if seen[want] == 0 {
			t.Errorf("no flow with %q", want)
		}
	}
}

// TestUnusable shows that objects which no API server accepts do not pass for others.
func TestUnusable(t *testing.T) {
	for name, f := range map[string]func(){
		"operator": func() {
			requirement(metav1.LabelSelectorRequirement{Key: "k", Operator: "Gt"}, nil)
		},
		"action": func() {
			c := NewCluster()
			c.Namespaces["n"] = &corev1.Namespace{}
			c.ClusterPolicies["p"] = &v1alpha2.ClusterNetworkPolicy{Spec: v1alpha2.ClusterNetworkPolicySpec{
				Tier: v1alpha2.AdminTier, Subject: v1alpha2.ClusterNetworkPolicySubject{Namespaces: &metav1.LabelSelector{}},
				Egress: []v1alpha2.ClusterNetworkPolicyEgressRule{{Action: "Log", To: []v1alpha2.ClusterNetworkPolicyEgressPeer{{Networks: []v1alpha2.CIDR{"0.0.0.0/0"}}}}},
			}}
			c.Evaluator().decide(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}, Egress, Flow{To: External()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
	if peers := NewCluster().Evaluator().peers("n", []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}, External()); peers {
		t.Error("a selector matches an address that no pod has")
	}
}
