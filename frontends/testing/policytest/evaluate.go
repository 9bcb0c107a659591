package policytest

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

// Flow is the first packet of a connection, after the Service's translation and before masquerading.
type Flow struct {
	From, To netip.Addr
	// TCP, UDP or SCTP, or empty without ports, such as ICMP
	Protocol corev1.Protocol
	// destination port
	Port int32
}

// String returns "10.0.0.1 > 10.0.0.2 TCP/80".
func (f Flow) String() string { return fmt.Sprintf("%s > %s %s/%d", f.From, f.To, f.Protocol, f.Port) }

// Direction is the direction of traffic as its pod sees it.
type Direction string

// The directions.
const (
	Ingress Direction = "ingress"
	Egress  Direction = "egress"
)

// Decision is one end's decision about a flow.
type Decision struct {
	Allowed bool
	// Policy is empty if no policy decides, or if several NetworkPolicies isolate the pod and no rule
	// accepts.
	Policy string
	// "ingress[0]", or empty if no rule matches
	Rule string
	Why  string
}

// Verdict has the decisions of both ends of a flow.
type Verdict struct {
	Allowed bool
	Egress  Decision
	Ingress Decision
}

func (v Verdict) String() string {
	return fmt.Sprintf("allowed=%t egress{%s} ingress{%s}", v.Allowed, v.Egress, v.Ingress)
}

func (d Decision) String() string {
	verb := "denied"
	if d.Allowed {
		verb = "allowed"
	}
	return fmt.Sprintf("%s %s %s%s", verb, d.Policy, d.Rule, d.Why)
}

// Evaluator decides flows in one state of a cluster.
type Evaluator struct {
	cluster *Cluster
	// An address must not have two pods.
	owners map[netip.Addr]*corev1.Pod
	nodes  map[netip.Addr]string
	// policies are sorted by name, clusterPolicies by priority and name.
	policies        []*networkingv1.NetworkPolicy
	clusterPolicies []*v1alpha2.ClusterNetworkPolicy
}

// Evaluator returns an Evaluator of the present state. It must not be used after a change.
func (c *Cluster) Evaluator() *Evaluator {
	e := &Evaluator{cluster: c, owners: map[netip.Addr]*corev1.Pod{}, nodes: map[netip.Addr]string{}}
	for _, pod := range c.Pods {
		for _, addr := range Addresses(pod) {
			e.owners[addr] = pod
		}
	}
	for name, node := range c.Nodes {
		for _, a := range node.Status.Addresses {
			if addr, err := netip.ParseAddr(a.Address); err == nil {
				e.nodes[addr] = name
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.Policies), compareNames) {
		e.policies = append(e.policies, c.Policies[key])
	}
	e.clusterPolicies = slices.SortedFunc(maps.Values(c.ClusterPolicies), func(a, b *v1alpha2.ClusterNetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Spec.Priority, b.Spec.Priority), cmp.Compare(a.Name, b.Name))
	})
	return e
}

// Owner returns the pod with the address in the pod network.
func (e *Evaluator) Owner(addr netip.Addr) (*corev1.Pod, bool) {
	pod, ok := e.owners[addr]
	return pod, ok
}

// Evaluate decides one flow.
func (c *Cluster) Evaluate(f Flow) Verdict { return c.Evaluator().Evaluate(f) }

// Evaluate decides a flow. Both ends must allow it. An end outside the pod network does not decide.
func (e *Evaluator) Evaluate(f Flow) Verdict {
	from, to := e.owners[f.From], e.owners[f.To]
	v := Verdict{
		Egress:  Decision{Allowed: true, Why: "source is not a pod"},
		Ingress: Decision{Allowed: true, Why: "destination is not a pod"},
	}
	if from != nil {
		v.Egress = e.decide(from, Egress, f)
	}
	switch {
	case to == nil:
	case to.Spec.NodeName != "" && e.nodes[f.From] == to.Spec.NodeName:
		// "OR if the traffic source is the pod's local node".
		v.Ingress = Decision{Allowed: true, Why: "source is the pod's node"}
	default:
		v.Ingress = e.decide(to, Ingress, f)
	}
	v.Allowed = v.Egress.Allowed && v.Ingress.Allowed
	return v
}

// The order is tier Admin, NetworkPolicies (final if one selects the pod), tier Baseline.
func (e *Evaluator) decide(pod *corev1.Pod, dir Direction, f Flow) Decision {
	if d, final := e.tier(adminTier, pod, dir, f); final {
		return d
	}
	if f.From == f.To {
		return Decision{Allowed: true, Why: "the pod itself"}
	}
	if d, final := e.networkPolicies(pod, dir, f); final {
		return d
	}
	if d, final := e.tier(baselineTier, pod, dir, f); final {
		return d
	}
	return Decision{Allowed: true, Why: "no policy decides"}
}
