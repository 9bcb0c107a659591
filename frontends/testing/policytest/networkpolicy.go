package policytest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// networkPolicies makes no final decision without a NetworkPolicy for the pod in the direction.
func (e *Evaluator) networkPolicies(pod *corev1.Pod, dir Direction, f Flow) (d Decision, final bool) {
	var selecting []string
	for _, p := range e.policies {
		if p.Namespace != pod.Namespace || !restricts(p, dir) || !selects(&p.Spec.PodSelector, pod.Labels) {
			continue
		}
		name := "NetworkPolicy " + namespacedName(p).String()
		selecting = append(selecting, name)
		for i, r := range sections(p, dir) {
			if e.peers(p.Namespace, r.peers, other(dir, f)) && e.ports(r.ports, f) {
				return Decision{Allowed: true, Policy: name, Rule: fmt.Sprintf("%s[%d]", dir, i)}, true
			}
		}
	}
	return Decision{Policy: strings.Join(selecting, ", ")}, len(selecting) > 0
}

func compareNames(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// restricts lets a policy without policyTypes affect ingress, and also egress if there are egress
// rules.
func restricts(p *networkingv1.NetworkPolicy, dir Direction) bool {
	if len(p.Spec.PolicyTypes) == 0 {
		return dir == Ingress || len(p.Spec.Egress) > 0
	}
	want := networkingv1.PolicyTypeIngress
	if dir == Egress {
		want = networkingv1.PolicyTypeEgress
	}
	return slices.Contains(p.Spec.PolicyTypes, want)
}

type section struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

func sections(p *networkingv1.NetworkPolicy, dir Direction) []section {
	var all []section
	if dir == Ingress {
		for _, r := range p.Spec.Ingress {
			all = append(all, section{r.From, r.Ports})
		}
		return all
	}
	for _, r := range p.Spec.Egress {
		all = append(all, section{r.To, r.Ports})
	}
	return all
}

func other(dir Direction, f Flow) netip.Addr {
	if dir == Ingress {
		return f.From
	}
	return f.To
}

func (e *Evaluator) peers(namespace string, peers []networkingv1.NetworkPolicyPeer, addr netip.Addr) bool {
	if len(peers) == 0 {
		return true
	}
	pod := e.owners[addr]
	return slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			return within(p.IPBlock.CIDR, addr) && !slices.ContainsFunc(p.IPBlock.Except, func(e string) bool { return within(e, addr) })
		}
		if pod == nil {
			return false
		}
		if p.NamespaceSelector == nil {
			return pod.Namespace == namespace && selects(p.PodSelector, pod.Labels)
		}
		ns := e.cluster.Namespaces[pod.Namespace]
		return ns != nil && selects(p.NamespaceSelector, ns.Labels) && (p.PodSelector == nil || selects(p.PodSelector, pod.Labels))
	})
}

// The CIDR may have bits set after its length.
func within(cidr string, addr netip.Addr) bool { return netip.MustParsePrefix(cidr).Contains(addr) }

func (e *Evaluator) ports(ports []networkingv1.NetworkPolicyPort, f Flow) bool {
	if len(ports) == 0 {
		return true
	}
	return slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		switch {
		case protocol != f.Protocol:
			return false
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			return e.named(p.Port.StrVal, f)
		case p.EndPort != nil:
			return p.Port.IntVal <= f.Port && f.Port <= *p.EndPort
		default:
			return p.Port.IntVal == f.Port
		}
	})
}

// Sidecar init containers count.
func (e *Evaluator) named(name string, f Flow) bool {
	pod := e.owners[f.To]
	if pod == nil {
		return false
	}
	containers := pod.Spec.Containers
	for _, ic := range pod.Spec.InitContainers {
		if ic.RestartPolicy != nil && *ic.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(slices.Clip(containers), ic)
		}
	}
	for _, container := range containers {
		for _, p := range container.Ports {
			protocol := p.Protocol
			if protocol == "" {
				protocol = corev1.ProtocolTCP
			}
			if p.Name == name && protocol == f.Protocol && p.ContainerPort == f.Port {
				return true
			}
		}
	}
	return false
}
