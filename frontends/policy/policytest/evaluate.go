package policytest

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// Flow is the first packet of a connection, as the network of the nodes sees it: its
// destination is the one after the translation of Services, its source the one before
// masquerading.
type Flow struct {
	From, To netip.Addr
	// Protocol is TCP, UDP or SCTP, or empty for one without ports, such as ICMP.
	Protocol corev1.Protocol
	// Port is the destination port.
	Port int32
}

// String returns "10.0.0.1 > 10.0.0.2 TCP/80".
func (f Flow) String() string { return fmt.Sprintf("%s > %s %s/%d", f.From, f.To, f.Protocol, f.Port) }

// Direction is that of traffic as its pod sees it.
type Direction string

// The directions.
const (
	Ingress Direction = "ingress"
	Egress  Direction = "egress"
)

// Decision is what one end of a flow decides.
type Decision struct {
	Allowed bool
	// Policy names the policy that decides: "NetworkPolicy shop/db" or
	// "ClusterNetworkPolicy db". It is empty if no policy does, or, for a NetworkPolicy
	// that isolates the pod, if none of several accepts.
	Policy string
	// Rule is its rule, "ingress[0]", or empty if no rule matches.
	Rule string
	// Why says it in words if there is no policy to name.
	Why string
}

// Verdict is what both ends of a flow decide.
type Verdict struct {
	Allowed bool
	Egress  Decision
	Ingress Decision
}

// String returns both decisions in words.
func (v Verdict) String() string {
	return fmt.Sprintf("allowed=%t egress{%s} ingress{%s}", v.Allowed, v.Egress, v.Ingress)
}

// String returns the decision in words.
func (d Decision) String() string {
	verb := "denied"
	if d.Allowed {
		verb = "allowed"
	}
	return fmt.Sprintf("%s %s %s%s", verb, d.Policy, d.Rule, d.Why)
}

// Evaluate decides a flow. It is allowed if both ends allow it. An end that is not in the pod
// network decides nothing.
func (c *Cluster) Evaluate(f Flow) Verdict {
	from, to := c.owner(f.From), c.owner(f.To)
	v := Verdict{
		Egress:  Decision{Allowed: true, Why: "source is not a pod"},
		Ingress: Decision{Allowed: true, Why: "destination is not a pod"},
	}
	if from != nil {
		v.Egress = c.decide(from, Egress, f)
	}
	switch {
	case to == nil:
	case to.Spec.NodeName != "" && c.nodeOf(f.From) == to.Spec.NodeName:
		// "OR if the traffic source is the pod's local node".
		v.Ingress = Decision{Allowed: true, Why: "source is the pod's node"}
	default:
		v.Ingress = c.decide(to, Ingress, f)
	}
	v.Allowed = v.Egress.Allowed && v.Ingress.Allowed
	return v
}

// decide is the decision of one pod: of the tier Admin, then of NetworkPolicies, which is
// final if one selects the pod, then of the tier Baseline.
func (c *Cluster) decide(pod *corev1.Pod, dir Direction, f Flow) Decision {
	if d, final := c.tier(adminTier, pod, dir, f); final {
		return d
	}
	if f.From == f.To {
		return Decision{Allowed: true, Why: "the pod itself"}
	}
	if d, final := c.networkPolicies(pod, dir, f); final {
		return d
	}
	if d, final := c.tier(baselineTier, pod, dir, f); final {
		return d
	}
	return Decision{Allowed: true, Why: "no policy decides"}
}
