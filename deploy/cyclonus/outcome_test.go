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
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// The pods of the namespace shop, both on the first node, by the names of their places.
const (
	serverPod = "w/a"
	clientPod = "y/c"
)

// The label app has the pod's name.
func (w *world) shopPod(t *testing.T, key string) *corev1.Pod {
	t.Helper()
	at := w.places[key]
	if at.node != w.lab.Nodes[0].Name() {
		t.Fatalf("pod %s is on %s, want the first node", key, at.node)
	}
	name := strings.ReplaceAll(key, "/", "-")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}}}
	pod.Spec.NodeName = at.node
	setAddresses(pod, at.addresses)
	return pod
}

func setAddresses(pod *corev1.Pod, addrs []netip.Addr) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: addrs[0].String()}
	for _, a := range addrs {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: a.String()})
	}
}

// unlimitErrors makes the nodes send an ICMP error for each rejected packet, past the kernel's rate
// limit.
func (w *world) unlimitErrors(t *testing.T) {
	t.Helper()
	for _, node := range w.lab.Nodes {
		for _, limit := range []string{"net/ipv4/icmp_ratelimit", "net/ipv6/icmp/ratelimit"} {
			if err := node.Sysctl(limit, "0"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func blocksOf(addrs []netip.Addr) (all []networkingv1.NetworkPolicyPeer) {
	for _, a := range addrs {
		all = append(all, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: netip.PrefixFrom(a, a.BitLen()).String()}})
	}
	return all
}

// ingressFrom admits only some addresses to a pod.
func ingressFrom(app string, from []netip.Addr) *networkingv1.NetworkPolicy {
	p := policyOf(app, networkingv1.PolicyTypeIngress)
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: blocksOf(from)}}
	return p
}

// egressTo lets a pod connect only to a port of some addresses.
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

type outcome string

const (
	answered outcome = "an answer"
	refused  outcome = "a rejection"
	silent   outcome = "nothing"
)

// expectAll reports the ports without the outcome, by TCP and UDP.
func expectAll(t *testing.T, what string, from *lab.Namespace, to [2]netip.AddrPort, want outcome) {
	t.Helper()
	for _, line := range eventually(t.Context(), from, to, want) {
		t.Errorf("%s: %s", what, line)
	}
}

// eventually asks by TCP and UDP until all ports have the outcome, and returns a line for each other
// port.
func eventually(ctx context.Context, from *lab.Namespace, to [2]netip.AddrPort, want outcome) []string {
	wait := patience
	switch want {
	case silent:
		wait = silence
	case refused:
		// An error during connect is noticed only at the kernel's retransmission.
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

// ask opens a connection or a UDP socket, and asks once.
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

func at(addrs []netip.Addr, port uint16) (to [2]netip.AddrPort) {
	for f, a := range addrs {
		to[f] = netip.AddrPortFrom(a, port)
	}
	return to
}
