package policytest

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

const (
	adminTier    = v1alpha2.AdminTier
	baselineTier = v1alpha2.BaselineTier
)

// tier decides by a tier's ClusterNetworkPolicies for the pod. Without a matching rule, or with Pass, the
// decision is not final.
func (e *Evaluator) tier(tier v1alpha2.Tier, pod *corev1.Pod, dir Direction, f Flow) (d Decision, final bool) {
	for _, p := range e.clusterPolicies {
		if p.Spec.Tier != tier || !e.subject(&p.Spec.Subject, pod) {
			continue
		}
		for i, r := range clusterRules(p, dir) {
			action, match := e.action(r, other(dir, f), f)
			if !match {
				continue
			}
			d := Decision{Policy: "ClusterNetworkPolicy " + p.Name, Rule: fmt.Sprintf("%s[%d]", dir, i)}
			switch action {
			case v1alpha2.ClusterNetworkPolicyRuleActionAccept:
				d.Allowed = true
				return d, true
			case v1alpha2.ClusterNetworkPolicyRuleActionDeny:
				return d, true
			case v1alpha2.ClusterNetworkPolicyRuleActionPass:
				return Decision{}, false
			default:
				panic(fmt.Sprintf("policytest: ClusterNetworkPolicy %s: action %q", p.Name, action))
			}
		}
	}
	return Decision{}, false
}

func (e *Evaluator) subject(s *v1alpha2.ClusterNetworkPolicySubject, pod *corev1.Pod) bool {
	if s.Pods != nil {
		return e.namespaced(s.Pods, pod)
	}
	return s.Namespaces != nil && e.inNamespace(s.Namespaces, pod)
}

func (e *Evaluator) namespaced(s *v1alpha2.NamespacedPod, pod *corev1.Pod) bool {
	return e.inNamespace(&s.NamespaceSelector, pod) && selects(&s.PodSelector, pod.Labels)
}

func (e *Evaluator) inNamespace(s *metav1.LabelSelector, pod *corev1.Pod) bool {
	ns := e.cluster.Namespaces[pod.Namespace]
	return ns != nil && selects(s, ns.Labels)
}

type clusterRule struct {
	action    v1alpha2.ClusterNetworkPolicyRuleAction
	peers     []v1alpha2.ClusterNetworkPolicyEgressPeer
	protocols []v1alpha2.ClusterNetworkPolicyProtocol
}

func clusterRules(p *v1alpha2.ClusterNetworkPolicy, dir Direction) []clusterRule {
	var all []clusterRule
	if dir == Egress {
		for _, r := range p.Spec.Egress {
			all = append(all, clusterRule{r.Action, r.To, r.Protocols})
		}
		return all
	}
	for _, r := range p.Spec.Ingress {
		rule := clusterRule{action: r.Action, protocols: r.Protocols}
		for _, from := range r.From {
			rule.peers = append(rule.peers, v1alpha2.ClusterNetworkPolicyEgressPeer{Namespaces: from.Namespaces, Pods: from.Pods})
		}
		all = append(all, rule)
	}
	return all
}

// action fails closed for an unknown kind of peer, with no known field. The experimental kinds nodes and
// domainNames are unknown.
func (e *Evaluator) action(r clusterRule, addr netip.Addr, f Flow) (v1alpha2.ClusterNetworkPolicyRuleAction, bool) {
	unknown := slices.ContainsFunc(r.peers, func(p v1alpha2.ClusterNetworkPolicyEgressPeer) bool {
		return p.Namespaces == nil && p.Pods == nil && p.Networks == nil
	})
	if unknown {
		return v1alpha2.ClusterNetworkPolicyRuleActionDeny, r.action != v1alpha2.ClusterNetworkPolicyRuleActionAccept
	}
	pod := e.owners[addr]
	peer := slices.ContainsFunc(r.peers, func(p v1alpha2.ClusterNetworkPolicyEgressPeer) bool {
		switch {
		case p.Networks != nil:
			return slices.ContainsFunc(p.Networks, func(cidr v1alpha2.CIDR) bool { return within(string(cidr), addr) })
		case pod == nil:
			return false
		case p.Pods != nil:
			return e.namespaced(p.Pods, pod)
		default:
			return e.inNamespace(p.Namespaces, pod)
		}
	})
	return r.action, peer && e.protocols(r.protocols, f)
}

func (e *Evaluator) protocols(protocols []v1alpha2.ClusterNetworkPolicyProtocol, f Flow) bool {
	if len(protocols) == 0 {
		return true
	}
	return slices.ContainsFunc(protocols, func(p v1alpha2.ClusterNetworkPolicyProtocol) bool {
		switch {
		case p.TCP != nil:
			return f.Protocol == corev1.ProtocolTCP && portMatches(p.TCP.DestinationPort, f.Port)
		case p.UDP != nil:
			return f.Protocol == corev1.ProtocolUDP && portMatches(p.UDP.DestinationPort, f.Port)
		case p.SCTP != nil:
			return f.Protocol == corev1.ProtocolSCTP && portMatches(p.SCTP.DestinationPort, f.Port)
		default:
			return e.named(p.DestinationNamedPort, f)
		}
	})
}

func portMatches(p *v1alpha2.Port, port int32) bool {
	switch {
	case p == nil:
		return true
	case p.Range != nil:
		return p.Range.Start <= port && port <= p.Range.End
	default:
		return p.Number == port
	}
}
