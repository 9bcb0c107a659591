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

	"github.com/weft-proxy/weft/deploy/e2e/lab"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// The pods of the namespace shop, both on the first node, by the names of their places.
const (
	serverPod = "w/a"
	clientPod = "y/c"
)

// The pods' port is ports[0].
const (
	servicePort = 8000
	nodePort    = 30080
)

// The Services of withServices: "web" has the pod w/a behind a NodePort, "none" is without pods.
var serviceAddresses = map[string][]netip.Addr{
	"web":  {netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::10")},
	"none": {netip.MustParseAddr("10.96.0.11"), netip.MustParseAddr("fd00:10:96::11")},
}

// withServices has policies and Services that both decide on a packet: policies judge a NodePort's
// client by its own address; a Service without endpoints rejects, even if the client may not send.
//
// Policy behaviour: 30, 39, 42.
func withServices(t *testing.T, w *world) {
	c := policytest.NewCluster()
	c.Namespaces["shop"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop"}}
	for _, key := range []string{serverPod, clientPod} {
		name := strings.ReplaceAll(key, "/", "-")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"pod": name}}}
		pod = runningAt(pod, w.places[key])
		c.Pods[keyOf(pod)] = pod
	}
	w.api.replace(c)
	for name := range serviceAddresses {
		w.api.Set(service(name))
	}
	for f := range 2 {
		w.api.Set(endpoints("web", f, w.places[serverPod]))
	}

	w.unlimitErrors(t)
	outside, inside := w.lab.Outside.Namespace, w.agents[clientPod].pod.Namespace
	expect := func(what string, from *lab.Namespace, to []netip.Addr, port uint16, want outcome) {
		t.Helper()
		for _, line := range eventually(t.Context(), from, to, port, want) {
			t.Errorf("%s: %s", what, line)
		}
	}
	node, web, none := w.lab.Nodes[0].Addresses.All(), serviceAddresses["web"], serviceAddresses["none"]
	expect("no policies", outside, node, nodePort, answered)
	expect("no policies", inside, web, servicePort, answered)
	expect("no policies, no endpoints", inside, none, servicePort, refused)

	w.api.Set(ingressFrom("w-a", w.lab.Outside.Addresses.All()))
	expect("a policy accepts the client's address", outside, node, nodePort, answered)
	expect("a policy accepts another address", inside, web, servicePort, silent)
	w.api.Set(ingressFrom("w-a", node))
	expect("a policy accepts the node's address alone", outside, node, nodePort, silent)
	w.api.Set(ingressFrom("w-a", w.places[clientPod].addresses))
	expect("a policy accepts a pod's address", inside, web, servicePort, answered)
	expect("a policy accepts a pod's address", outside, node, nodePort, silent)

	w.api.Set(policyOf("y-c", networkingv1.PolicyTypeEgress))
	expect("the client is isolated", inside, web, servicePort, silent)
	expect("the client is isolated, no endpoints", inside, none, servicePort, refused)
	// Without endpoints the dropped packets are rejected.
	for f := range 2 {
		w.api.Delete(endpoints("web", f, w.places[serverPod]))
	}
	expect("the endpoints are gone", inside, web, servicePort, refused)
	must(t, w.err())
}

// policyOf isolates a pod.
func policyOf(app string, direction networkingv1.PolicyType) *networkingv1.NetworkPolicy {
	name := app + "-" + strings.ToLower(string(direction))
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"pod": app}},
			PolicyTypes: []networkingv1.PolicyType{direction},
		},
	}
}

// ingressFrom admits only some addresses to a pod.
func ingressFrom(app string, from []netip.Addr) *networkingv1.NetworkPolicy {
	var peers []networkingv1.NetworkPolicyPeer
	for _, a := range from {
		block := &networkingv1.IPBlock{CIDR: netip.PrefixFrom(a, a.BitLen()).String()}
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: block})
	}
	p := policyOf(app, networkingv1.PolicyTypeIngress)
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: peers}}
	return p
}

func service(name string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("service-" + name)}}
	both := corev1.IPFamilyPolicyRequireDualStack
	s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &both, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	for _, a := range serviceAddresses[name] {
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, a.String())
	}
	s.Spec.ClusterIP, s.Spec.Type = s.Spec.ClusterIPs[0], corev1.ServiceTypeClusterIP
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: strings.ToLower(string(p)), Protocol: p, Port: servicePort})
	}
	if name == "web" {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeNodePort, corev1.ServiceExternalTrafficPolicyLocal
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = nodePort
		}
	}
	return s
}

func endpoints(name string, family int, at place) *discoveryv1.EndpointSlice {
	id := fmt.Sprintf("%s-%d", name, family)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: id, UID: types.UID("slice-" + id), Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}[family],
	}
	ready := true
	s.Endpoints = []discoveryv1.Endpoint{{
		Addresses: []string{at.addresses[family].String()}, NodeName: &at.node, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
	}}
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		port, name := int32(ports[0]), strings.ToLower(string(p))
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &p, Port: &port})
	}
	return s
}
