package policytest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"
)

func compareStrings(a, b string) int { return strings.Compare(a, b) }

// addPolicy returns nil without a namespace.
func (g *Generator) addPolicy() *networkingv1.NetworkPolicy {
	namespace, ok := anyOf(g, g.Cluster.Namespaces, compareStrings)
	if !ok {
		return nil
	}
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: g.name("policy")}}
	p.UID = types.UID(g.name("uid"))
	g.fillPolicy(&p.Spec)
	g.Cluster.Policies[namespacedName(p)] = p
	return p
}

// fillPolicy also writes empty sections and sections not in policyTypes.
func (g *Generator) fillPolicy(spec *networkingv1.NetworkPolicySpec) {
	*spec = networkingv1.NetworkPolicySpec{PodSelector: g.selector("app", "tier", "env")}
	in, out := networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress
	spec.PolicyTypes = pick(g, nil, []networkingv1.PolicyType{in}, []networkingv1.PolicyType{out}, []networkingv1.PolicyType{in, out}, []networkingv1.PolicyType{out, in})
	if g.chance(80) {
		spec.Ingress = some(g, 3, func() networkingv1.NetworkPolicyIngressRule {
			return networkingv1.NetworkPolicyIngressRule{From: g.policyPeers(), Ports: g.policyPorts()}
		})
	}
	if g.chance(60) {
		spec.Egress = some(g, 3, func() networkingv1.NetworkPolicyEgressRule {
			return networkingv1.NetworkPolicyEgressRule{To: g.policyPeers(), Ports: g.policyPorts()}
		})
	}
}

// policyPeers returns nil, an empty list or a list.
func (g *Generator) policyPeers() []networkingv1.NetworkPolicyPeer {
	switch {
	case g.chance(8):
		return nil
	case g.chance(5):
		return []networkingv1.NetworkPolicyPeer{}
	}
	return some(g, 3, func() networkingv1.NetworkPolicyPeer {
		var peer networkingv1.NetworkPolicyPeer
		kind := g.IntN(4)
		if kind == 0 {
			cidr, except := g.block()
			peer.IPBlock = &networkingv1.IPBlock{CIDR: cidr, Except: except}
			return peer
		}
		if kind != 1 {
			s := g.selector("team", "env", corev1.LabelMetadataName)
			peer.NamespaceSelector = &s
		}
		if kind != 2 {
			s := g.selector("app", "tier", "env")
			peer.PodSelector = &s
		}
		return peer
	})
}

func (g random) policyPorts() []networkingv1.NetworkPolicyPort {
	switch {
	case g.chance(25):
		return nil
	case g.chance(5):
		return []networkingv1.NetworkPolicyPort{}
	}
	return some(g, 3, func() networkingv1.NetworkPolicyPort {
		var port networkingv1.NetworkPolicyPort
		if g.chance(75) {
			protocol := pick(g, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
			port.Protocol = &protocol
		}
		number := intstr.FromInt32(pick(g, portNumbers()...))
		switch g.IntN(6) {
		case 0:
		case 1, 2:
			name := intstr.FromString(pick(g, "web", "dns", "metrics", "none"))
			port.Port = &name
		case 3:
			end := number.IntVal + pick[int32](g, 0, 1, 400)
			port.Port, port.EndPort = &number, &end
		default:
			port.Port = &number
		}
		return port
	})
}

func (g *Generator) selector(keys ...string) metav1.LabelSelector {
	var s metav1.LabelSelector
	value := func(key string) string {
		if key != corev1.LabelMetadataName {
			return g.value()
		}
		name, _ := anyOf(g, g.Cluster.Namespaces, compareStrings)
		return name
	}
	switch g.IntN(6) {
	case 0:
		return s
	case 1, 2:
		key := pick(g, keys...)
		s.MatchLabels = map[string]string{key: value(key)}
	case 3:
		for _, key := range keys[:2] {
			if s.MatchLabels == nil {
				s.MatchLabels = map[string]string{}
			}
			s.MatchLabels[key] = value(key)
		}
	default:
		s.MatchExpressions = some(g, 2, func() metav1.LabelSelectorRequirement {
			r := metav1.LabelSelectorRequirement{Key: pick(g, keys...)}
			r.Operator = pick(g, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = some(g, 3, func() string { return value(r.Key) })
			}
			return r
		})
		if g.chance(25) {
			key := pick(g, keys...)
			s.MatchLabels = map[string]string{key: value(key)}
		}
	}
	return s
}

// block returns a range, perhaps with bits set after its length, and its exceptions.
func (g *Generator) block() (cidr string, except []string) {
	node, host := 1+g.IntN(g.cfg.Nodes), 2+g.IntN(6)
	v4, v6 := fmt.Sprintf("10.244.%d.%d", node, host), fmt.Sprintf("fd00:10:244:%d::%x", node, host)
	if g.chance(60) {
		cidr = pick(g, "0.0.0.0/0", "10.244.0.0/16", v4+"/24", v4+"/30", v4+"/32", External().String()+"/32", "192.168.200.0/24")
		return cidr, g.excepts(cidr, v4+"/31", v4+"/32", v4+"/30")
	}
	cidr = pick(g, "::/0", "fd00:10:244::/48", v6+"/64", v6+"/126", v6+"/128", "fd00:200::/64")
	return cidr, g.excepts(cidr, v6+"/127", v6+"/128", v6+"/126")
}

func (g *Generator) excepts(cidr string, ranges ...string) []string {
	outer := mustPrefix(cidr)
	var all []string
	for _, r := range ranges {
		if inner := mustPrefix(r); g.chance(35) && outer.Contains(inner.Addr()) && inner.Bits() > outer.Bits() {
			all = append(all, r)
		}
	}
	return all
}

func (g *Generator) addClusterPolicy() *v1alpha2.ClusterNetworkPolicy {
	p := &v1alpha2.ClusterNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: g.name("cluster")}}
	p.UID = types.UID(g.name("uid"))
	g.fillClusterPolicy(&p.Spec)
	g.Cluster.ClusterPolicies[p.Name] = p
	return p
}

func (g *Generator) fillClusterPolicy(spec *v1alpha2.ClusterNetworkPolicySpec) {
	*spec = v1alpha2.ClusterNetworkPolicySpec{
		Tier: pick(g, v1alpha2.AdminTier, v1alpha2.BaselineTier), Priority: int32(g.IntN(5)),
	}
	if g.chance(50) {
		s := g.selector("team", "env", corev1.LabelMetadataName)
		spec.Subject.Namespaces = &s
	} else {
		spec.Subject.Pods = g.namespacedPod()
	}
	if g.chance(80) {
		spec.Ingress = some(g, 3, func() v1alpha2.ClusterNetworkPolicyIngressRule {
			return v1alpha2.ClusterNetworkPolicyIngressRule{Name: pick(g, "", "a rule"), Action: g.action(), From: g.clusterSources(), Protocols: g.clusterProtocols()}
		})
	}
	if g.chance(70) {
		spec.Egress = some(g, 3, func() v1alpha2.ClusterNetworkPolicyEgressRule {
			return v1alpha2.ClusterNetworkPolicyEgressRule{Action: g.action(), To: g.clusterDestinations(), Protocols: g.clusterProtocols()}
		})
	}
}

func (g random) action() v1alpha2.ClusterNetworkPolicyRuleAction {
	return pick(g, v1alpha2.ClusterNetworkPolicyRuleActionAccept, v1alpha2.ClusterNetworkPolicyRuleActionDeny, v1alpha2.ClusterNetworkPolicyRuleActionPass)
}

func (g *Generator) namespacedPod() *v1alpha2.NamespacedPod {
	return &v1alpha2.NamespacedPod{NamespaceSelector: g.selector("team", "env", corev1.LabelMetadataName), PodSelector: g.selector("app", "tier", "env")}
}

// clusterSources rarely includes a peer of an unknown kind.
func (g *Generator) clusterSources() []v1alpha2.ClusterNetworkPolicyIngressPeer {
	return some(g, 3, func() v1alpha2.ClusterNetworkPolicyIngressPeer {
		var peer v1alpha2.ClusterNetworkPolicyIngressPeer
		switch {
		case g.chance(3):
		case g.chance(50):
			s := g.selector("team", "env", corev1.LabelMetadataName)
			peer.Namespaces = &s
		default:
			peer.Pods = g.namespacedPod()
		}
		return peer
	})
}

func (g *Generator) clusterDestinations() []v1alpha2.ClusterNetworkPolicyEgressPeer {
	return some(g, 3, func() v1alpha2.ClusterNetworkPolicyEgressPeer {
		var peer v1alpha2.ClusterNetworkPolicyEgressPeer
		switch {
		case g.chance(3):
			peer.DomainNames = []v1alpha2.DomainName{"example.com"}
		case g.chance(35):
			for _, s := range some(g, 3, func() string { cidr, _ := g.block(); return cidr }) {
				peer.Networks = append(peer.Networks, v1alpha2.CIDR(s))
			}
		case g.chance(50):
			s := g.selector("team", "env", corev1.LabelMetadataName)
			peer.Namespaces = &s
		default:
			peer.Pods = g.namespacedPod()
		}
		return peer
	})
}

func (g random) clusterProtocols() []v1alpha2.ClusterNetworkPolicyProtocol {
	if g.chance(40) {
		return nil
	}
	return some(g, 3, func() v1alpha2.ClusterNetworkPolicyProtocol {
		var p v1alpha2.ClusterNetworkPolicyProtocol
		switch g.IntN(4) {
		case 0:
			p.TCP = &v1alpha2.ClusterNetworkPolicyProtocolTCP{DestinationPort: g.clusterPort()}
		case 1:
			p.UDP = &v1alpha2.ClusterNetworkPolicyProtocolUDP{DestinationPort: g.clusterPort()}
		case 2:
			p.SCTP = &v1alpha2.ClusterNetworkPolicyProtocolSCTP{DestinationPort: g.clusterPort()}
		default:
			p.DestinationNamedPort = pick(g, "web", "dns", "metrics", "none")
		}
		return p
	})
}

func (g random) clusterPort() *v1alpha2.Port {
	number := pick(g, portNumbers()...)
	switch g.IntN(3) {
	case 0:
		return nil
	case 1:
		return &v1alpha2.Port{Number: number}
	default:
		return &v1alpha2.Port{Range: &v1alpha2.PortRange{Start: number, End: number + 1 + int32(g.IntN(400))}}
	}
}
