package cyclonus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
	"github.com/weft-proxy/weft/frontends/policy/policytest"
)

// The Services of withServices: "web" has the pod w/a behind a NodePort, "none" has no pod.
var serviceAddresses = map[string][2]netip.Addr{
	"web":  {netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::10")},
	"none": {netip.MustParseAddr("10.96.0.11"), netip.MustParseAddr("fd00:10:96::11")},
}

const nodePort = 30080

// withServices has policies and Services on one node, and shows what happens to a packet on
// which both decide: a client from outside that comes through a NodePort is judged by its
// own address; a Service without endpoints rejects, also if the client may send nothing.
//
// Policy behaviour: 30, 31, 38, 39, 42.
func withServices(t *testing.T, w *world) {
	c := policytest.NewCluster()
	c.Namespaces["shop"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop"}}
	const server, client = "w/a", "y/c" // on the first node
	for _, key := range []string{server, client} {
		p := w.places[key]
		if p.node != w.lab.Nodes[0].Name() {
			t.Fatalf("pod %s is on %s, want the first node", key, p.node)
		}
		name := strings.ReplaceAll(key, "/", "-")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}}}
		pod.Spec.NodeName = p.node
		pod.Status.Phase = corev1.PodRunning
		for _, a := range p.addresses {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: a.String()})
		}
		pod.Status.PodIP = pod.Status.PodIPs[0].IP
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
		api.Set(endpoints("web", f, w.places[server]))
	}

	// A rejection is an ICMP error, of which the kernel sends few to one host.
	for _, limit := range []string{"net/ipv4/icmp_ratelimit", "net/ipv6/icmp/ratelimit"} {
		if err := w.lab.Nodes[0].Sysctl(limit, "0"); err != nil {
			t.Fatal(err)
		}
	}
	outside, inside := w.lab.Outside.Namespace, w.agents[client].pod.Namespace
	through, direct := nodePorts(w.lab.Nodes[0]), servicePorts("web")
	expect := func(what string, from *lab.Namespace, to [2]netip.AddrPort, want outcome) {
		t.Helper()
		for _, line := range eventually(t.Context(), from, to, want) {
			t.Errorf("%s: %s", what, line)
		}
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
	api.Set(ingressFrom("w-a", w.places[client].addresses))
	expect("a policy accepts a pod's address", inside, direct, answered)
	expect("a policy accepts a pod's address", outside, through, silent)

	// The pod may send to the server's port alone, which is not the Service's.
	api.Set(egressTo("y-c", w.places[server].addresses, int32(ports[0])))
	expect("a policy accepts the pod's port", inside, direct, answered)
	expect("the client is isolated, no endpoints", inside, servicePorts("none"), refused)
	api.Set(egressTo("y-c", w.places[server].addresses, servicePort))
	expect("a policy accepts the Service's port", inside, direct, silent)
	expect("the client is isolated, no endpoints", inside, servicePorts("none"), refused)
	// The last endpoint goes: what was dropped is rejected.
	for f := range 2 {
		api.Delete(endpoints("web", f, w.places[server]))
	}
	expect("the endpoints are gone", inside, direct, refused)
	if err := w.err(); err != nil {
		t.Error(err)
	}
}

// servicePort is the port of the Services; the pods' is ports[0].
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

// endpoints are one pod, on its node.
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

// blocksOf are peers with one address each.
func blocksOf(addrs []netip.Addr) (all []networkingv1.NetworkPolicyPeer) {
	for _, a := range addrs {
		all = append(all, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: netip.PrefixFrom(a, a.BitLen()).String()}})
	}
	return all
}

// ingressFrom lets a pod get connections from some addresses alone.
func ingressFrom(app string, from []netip.Addr) *networkingv1.NetworkPolicy {
	p := policyOf(app, networkingv1.PolicyTypeIngress)
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: blocksOf(from)}}
	return p
}

// egressTo lets a pod connect to a port of some addresses alone.
func egressTo(app string, to []netip.Addr, port int32) *networkingv1.NetworkPolicy {
	p := policyOf(app, networkingv1.PolicyTypeEgress)
	rule := networkingv1.NetworkPolicyEgressRule{To: blocksOf(to)}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		number := intstr.FromInt32(port)
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &number})
	}
	p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{rule}
	return p
}

func policyOf(app string, direction networkingv1.PolicyType) *networkingv1.NetworkPolicy {
	name := app + "-" + strings.ToLower(string(direction))
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, PolicyTypes: []networkingv1.PolicyType{direction}},
	}
}

// outcome is what a client gets.
type outcome string

const (
	answered outcome = "an answer"
	refused  outcome = "a rejection"
	silent   outcome = "nothing"
)

// eventually asks until all ports of both families have the outcome, by TCP and UDP, and
// returns a line for each that does not have it in time.
func eventually(ctx context.Context, from *lab.Namespace, to [2]netip.AddrPort, want outcome) []string {
	wait := patience
	if want == refused {
		// An error that comes while the client is still in connect is noticed only when the
		// kernel sends again.
		wait = 2 * time.Second
	}
	for deadline := time.Now().Add(bound); ; {
		var mu sync.Mutex
		var wrong []string
		var asking sync.WaitGroup
		for _, network := range []string{"tcp", "udp"} {
			for _, addr := range to {
				asking.Go(func() {
					if got, err := ask(ctx, from, network, addr, wait); got != want {
						mu.Lock()
						defer mu.Unlock()
						wrong = append(wrong, fmt.Sprintf("%s %s: %s (%v), want %s", network, addr, got, err, want))
					}
				})
			}
		}
		asking.Wait()
		if len(wrong) == 0 || time.Now().After(deadline) {
			return wrong
		}
	}
}

// ask opens a connection, or a UDP socket, and asks once.
func ask(ctx context.Context, from *lab.Namespace, network string, to netip.AddrPort, wait time.Duration) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	conn, err := from.Dial(ctx, network, to.String())
	if err == nil {
		defer conn.Close()
		err = exchange(conn, wait)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	switch {
	case err == nil:
		return answered, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused, err
	default:
		return silent, err
	}
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
