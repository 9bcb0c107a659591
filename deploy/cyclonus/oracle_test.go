package cyclonus

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

var seed = flag.Uint64("cyclonus.seed", 1, "decides what is random")

// onPaper places the pods without a network.
func onPaper() map[string]place {
	places := map[string]place{}
	for i, key := range podKeys() {
		places[key] = place{fmt.Sprintf("node-%d", i%3+1), []netip.Addr{
			netip.AddrFrom4([4]byte{10, 244, byte(i%3 + 1), byte(i + 2)}),
			netip.MustParseAddr(fmt.Sprintf("fd00:10:244:%d::%x", i%3+1, i+2)),
		}}
	}
	return places
}

// TestEvaluatorSteps compares the evaluator with the oracle in all steps.
func TestEvaluatorSteps(t *testing.T) {
	places := onPaper()
	steps, flows := 0, 0
	for _, s := range allSteps(t, places) {
		c := s.cluster(places)
		for f, want := range s.expected(places) {
			if v := c.Evaluate(f.Flow); v.Allowed != want {
				t.Errorf("%s: %s > %s %s: %s; the oracle: %t", s.name, f.from, f.to, f, v, want)
			}
			flows++
		}
		steps++
	}
	t.Logf("%d steps, %d flows: no difference", steps, flows)
}

// TestOracleBugs shows the oracle's bugs, which excuse its verdicts in TestEvaluatorRandom, beside the
// API's own library.
func TestOracleBugs(t *testing.T) {
	for name, test := range map[string]struct {
		selector metav1.LabelSelector
		labels   map[string]string
		want     bool
	}{
		"NotIn without the key":       {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"v"}}}}, map[string]string{"other": "v"}, true},
		"empty value without the key": {metav1.LabelSelector{MatchLabels: map[string]string{"k": ""}}, map[string]string{"other": "v"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := metav1.LabelSelectorAsSelector(&test.selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Matches(labels.Set(test.labels)); got != test.want {
				t.Errorf("the API's library: %t, want %t", got, test.want)
			}
			target := &matcher.Target{Namespace: "n", PodSelector: test.selector}
			if got := target.IsMatch("n", test.labels); got == test.want {
				t.Errorf("the oracle: %t, as it should be: remove the excuse", got)
			}
		})
	}
	t.Run("no policyTypes", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("the oracle does not panic: remove the excuse")
			}
		}()
		matcher.BuildNetworkPolicies(false, []*networkingv1.NetworkPolicy{{}})
	})
}

// TestEvaluatorRandom compares the evaluator with the oracle on random clusters, rewritten with the
// same meaning to avoid the oracle's bugs.
func TestEvaluatorRandom(t *testing.T) {
	g := policytest.New(policytest.Config{Seed: *seed, Nodes: 3, Namespaces: 3, Pods: 10, Policies: 8})
	flows, allowed, excused := 0, 0, 0
	for range 1500 {
		g.Change()
		plain := g.Cluster
		rewritten := explicit(plain)
		raw, fixed := oracleOf(plain), oracleOf(rewritten)
		ends := plain.Ends()
		for range 60 {
			f := g.Flow(ends)
			// The oracle does not model nodes or protocols without ports, and applies policies to a
			// pod's traffic to itself.
			if f.Protocol == "" || f.From == f.To || isNode(plain, f.From) || isNode(plain, f.To) {
				continue
			}
			v, again, want := plain.Evaluate(f), rewritten.Evaluate(f), fixed.allows(rewritten, f)
			if v.Allowed != want || again.Allowed != want {
				t.Fatalf("seed %d: %s: %s, rewritten %s; the oracle: %t", *seed, f, v, again, want)
			}
			if raw.allows(plain, f) != want {
				excused++
			}
			if want {
				allowed++
			}
			flows++
		}
	}
	t.Logf("%d flows, %d allowed: no difference; in the original form %d are excused by the oracle's bugs", flows, allowed, excused)
	if allowed == 0 || allowed == flows {
		t.Error("all flows have the same verdict")
	}
}

func isNode(c *policytest.Cluster, addr netip.Addr) bool {
	for _, n := range c.Nodes {
		for _, a := range n.Status.Addresses {
			if a.Address == addr.String() {
				return true
			}
		}
	}
	return false
}

type oracle struct{ policy *matcher.Policy }

// oracleOf states policyTypes, without which the oracle panics.
func oracleOf(c *policytest.Cluster) oracle {
	var policies []*networkingv1.NetworkPolicy
	for _, p := range c.Policies {
		if len(p.Spec.PolicyTypes) == 0 {
			p = p.DeepCopy()
			p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
			if len(p.Spec.Egress) > 0 {
				p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
			}
		}
		policies = append(policies, p)
	}
	return oracle{matcher.BuildNetworkPolicies(false, policies)}
}

// The oracle accepts one port name, so allows tries all.
func (o oracle) allows(c *policytest.Cluster, f policytest.Flow) bool {
	names := append(portNames(c, f), "")
	for _, isIngress := range []bool{true, false} {
		any := false
		for _, name := range names {
			any = any || o.policy.IsIngressOrEgressAllowed(&matcher.Traffic{
				Source: peer(c, f.From), Destination: peer(c, f.To),
				ResolvedPort: int(f.Port), ResolvedPortName: name, Protocol: f.Protocol,
			}, isIngress).IsAllowed()
		}
		if !any {
			return false
		}
	}
	return true
}

func peer(c *policytest.Cluster, addr netip.Addr) *matcher.TrafficPeer {
	p := &matcher.TrafficPeer{IP: addr.String()}
	if name, ok := c.Owner(addr); ok {
		p.Internal = &matcher.InternalPeer{Namespace: name.Namespace, PodLabels: c.Pods[name].Labels, NamespaceLabels: c.Namespaces[name.Namespace].Labels}
	}
	return p
}

// portNames are the destination's names for the flow's port.
func portNames(c *policytest.Cluster, f policytest.Flow) []string {
	name, ok := c.Owner(f.To)
	if !ok {
		return nil
	}
	var names []string
	pod := c.Pods[name]
	containers := append([]corev1.Container{}, pod.Spec.Containers...)
	for _, ic := range pod.Spec.InitContainers {
		if ic.RestartPolicy != nil {
			containers = append(containers, ic)
		}
	}
	for _, container := range containers {
		for _, p := range container.Ports {
			if p.ContainerPort == f.Port && p.Protocol == f.Protocol {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// absent is a missing label's value in the explicit form.
const absent = "absent"

// explicit returns an equivalent cluster in which every object has every label, and selectors never
// test existence.
func explicit(c *policytest.Cluster) *policytest.Cluster {
	out := policytest.NewCluster()
	maps.Copy(out.Nodes, c.Nodes)
	for k, ns := range c.Namespaces {
		ns = ns.DeepCopy()
		fill(ns.Labels, "team", "env")
		out.Namespaces[k] = ns
	}
	for k, pod := range c.Pods {
		pod = pod.DeepCopy()
		fill(pod.Labels, "app", "tier", "env")
		out.Pods[k] = pod
	}
	for k, p := range c.Policies {
		p = p.DeepCopy()
		rewrite(&p.Spec.PodSelector)
		for i := range p.Spec.Ingress {
			rewritePeers(p.Spec.Ingress[i].From)
		}
		for i := range p.Spec.Egress {
			rewritePeers(p.Spec.Egress[i].To)
		}
		out.Policies[k] = p
	}
	return out
}

func fill(labels map[string]string, keys ...string) {
	for _, key := range keys {
		if _, ok := labels[key]; !ok {
			labels[key] = absent
		}
	}
}

func rewritePeers(peers []networkingv1.NetworkPolicyPeer) {
	for i := range peers {
		rewrite(peers[i].PodSelector)
		rewrite(peers[i].NamespaceSelector)
	}
}

func rewrite(s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	for i, r := range s.MatchExpressions {
		switch r.Operator {
		case metav1.LabelSelectorOpExists:
			s.MatchExpressions[i] = metav1.LabelSelectorRequirement{Key: r.Key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{absent}}
		case metav1.LabelSelectorOpDoesNotExist:
			s.MatchExpressions[i] = metav1.LabelSelectorRequirement{Key: r.Key, Operator: metav1.LabelSelectorOpIn, Values: []string{absent}}
		}
	}
}
