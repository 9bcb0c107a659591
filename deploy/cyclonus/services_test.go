package cyclonus

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// The Services of withServices: "web" has the pod w/a behind a NodePort, "none" is without pods.
var serviceAddresses = map[string][2]netip.Addr{
	"web":  {netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::10")},
	"none": {netip.MustParseAddr("10.96.0.11"), netip.MustParseAddr("fd00:10:96::11")},
}

const nodePort = 30080

// withServices has policies and Services that both decide on a packet: policies judge a NodePort's
// client by its own address; a pod reaches itself through its Service; a Service without endpoints
// rejects, even if the client may not send.
//
// Policy behaviour: 30, 31, 35, 38, 39, 42, 65.
func withServices(t *testing.T, w *world) {
	c := policytest.NewCluster()
	c.Namespaces["shop"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop"}}
	for _, key := range []string{serverPod, clientPod} {
		pod := w.shopPod(t, key)
		c.Pods[keyOf(pod)] = pod
	}
	api, err := w.follow(c)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Stop()
	for name := range serviceAddresses {
		api.Set(service(name))
	}
	for f := range 2 {
		api.Set(endpoints("web", f, w.places[serverPod]))
	}

	w.unlimitErrors(t)
	outside, inside := w.lab.Outside.Namespace, w.agents[clientPod].pod.Namespace
	through, direct := nodePorts(w.lab.Nodes[0]), servicePorts("web")
	expect := func(what string, from *lab.Namespace, to [2]netip.AddrPort, want outcome) {
		t.Helper()
		expectAll(t, what, from, to, want)
	}
	expect("no policies", outside, through, answered)
	expect("no policies", inside, direct, answered)
	expect("no policies, no endpoints", inside, servicePorts("none"), refused)

	hosts := w.lab.Outside.Addresses.All()
	node := w.lab.Nodes[0].Addresses.All()
	api.Set(ingressFrom("w-a", hosts))
	expect("a policy accepts the client's address", outside, through, answered)
	expect("a policy accepts another address", inside, direct, silent)
	api.Set(ingressFrom("w-a", node))
	expect("a policy accepts the node's address alone", outside, through, silent)
	// A pod reaches itself through its Service, unless the tier Admin denies it.
	itself := w.agents[serverPod].pod.Namespace
	api.Set(policyOf("w-a", networkingv1.PolicyTypeIngress), policyOf("w-a", networkingv1.PolicyTypeEgress))
	expect("an isolated pod, from itself", itself, direct, answered)
	expect("an isolated pod, from another", inside, direct, silent)
	api.Set(adminDenies())
	expect("the tier Admin denies", itself, direct, silent)
	expect("the tier Admin denies, without the Service", itself, at(w.places[serverPod].addresses, ports[0]), answered)
	api.Delete(adminDenies(), policyOf("w-a", networkingv1.PolicyTypeEgress))
	api.Set(ingressFrom("w-a", w.places[clientPod].addresses))
	expect("a policy accepts a pod's address", inside, direct, answered)
	expect("a policy accepts a pod's address", outside, through, silent)

	// The pod may send only to the server's port, which differs from the Service's.
	api.Set(egressTo("y-c", w.places[serverPod].addresses, int32(ports[0])))
	expect("a policy accepts the pod's port", inside, direct, answered)
	expect("the client is isolated, no endpoints", inside, servicePorts("none"), refused)
	api.Set(egressTo("y-c", w.places[serverPod].addresses, servicePort))
	expect("a policy accepts the Service's port", inside, direct, silent)
	// Without endpoints the dropped packets are rejected.
	for f := range 2 {
		api.Delete(endpoints("web", f, w.places[serverPod]))
	}
	expect("the endpoints are gone", inside, direct, refused)
	if err := w.err(); err != nil {
		t.Error(err)
	}
}

func adminDenies() *v1alpha2.ClusterNetworkPolicy {
	all := &metav1.LabelSelector{}
	return &v1alpha2.ClusterNetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "deny", UID: "deny"},
		Spec: v1alpha2.ClusterNetworkPolicySpec{
			Tier: v1alpha2.AdminTier, Priority: 1, Subject: v1alpha2.ClusterNetworkPolicySubject{Namespaces: all},
			Ingress: []v1alpha2.ClusterNetworkPolicyIngressRule{{
				Action: v1alpha2.ClusterNetworkPolicyRuleActionDeny, From: []v1alpha2.ClusterNetworkPolicyIngressPeer{{Namespaces: all}},
			}},
		},
	}
}

// the pods' port is ports[0]
const servicePort = 8000

func service(name string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("service-" + name)}}
	both, local := corev1.IPFamilyPolicyRequireDualStack, corev1.ServiceExternalTrafficPolicyLocal
	s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &both, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	for _, a := range serviceAddresses[name] {
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, a.String())
	}
	s.Spec.ClusterIP, s.Spec.Type = s.Spec.ClusterIPs[0], corev1.ServiceTypeClusterIP
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: strings.ToLower(string(p)), Protocol: p, Port: servicePort})
	}
	if name == "web" {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeNodePort, local
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = nodePort
		}
	}
	return s
}

func endpoints(name string, family int, at place) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%d", name, family), UID: types.UID(fmt.Sprintf("slice-%s-%d", name, family)), Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}[family],
	}
	ready := true
	s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{at.addresses[family].String()}, NodeName: &at.node, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		port, name := int32(ports[0]), strings.ToLower(string(p))
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &p, Port: &port})
	}
	return s
}

func nodePorts(n *lab.Node) (to [2]netip.AddrPort) {
	for f, a := range n.Addresses.All() {
		to[f] = netip.AddrPortFrom(a, nodePort)
	}
	return to
}

func servicePorts(name string) (to [2]netip.AddrPort) {
	for f, a := range serviceAddresses[name] {
		to[f] = netip.AddrPortFrom(a, servicePort)
	}
	return to
}
