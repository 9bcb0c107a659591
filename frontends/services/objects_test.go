package services

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/source"
)

// script is a source that delivers what the test tells it to.
type script struct {
	batches chan []source.Event
}

// newScript starts with these events, and is synced then.
func newScript(first ...source.Event) *script {
	s := &script{batches: make(chan []source.Event, 100)}
	s.batches <- append(first, source.Synced{})
	return s
}

func (s *script) deliver(events ...source.Event) { s.batches <- events }

func (s *script) Run(ctx context.Context, deliver func([]source.Event)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case b := <-s.batches:
			deliver(b)
		}
	}
}

// setService makes a Service default/name with a TCP and a UDP port 80.
func setService(name string, nodePort int32, ips ...string) source.Event {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = ips[0], ips
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: strings.ToLower(string(p)), Protocol: p, Port: 80, NodePort: nodePort})
	}
	return source.ServiceSet{Service: s}
}

func serviceGone(name string) source.Event {
	return source.ServiceGone{Name: types.NamespacedName{Namespace: "default", Name: name}}
}

// setSlice makes the EndpointSlice of a Service for the family of its endpoints,
// which all listen on 8080. Local ones end in a star.
func setSlice(service string, family discoveryv1.AddressType, addrs ...string) source.Event {
	s := &discoveryv1.EndpointSlice{AddressType: family}
	s.Namespace, s.Name = "default", service+"-"+strings.ToLower(string(family))
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		name, port := strings.ToLower(string(p)), int32(8080)
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &p, Port: &port})
	}
	for _, a := range addrs {
		node := "node-2"
		a, local := strings.CutSuffix(a, "*")
		if local {
			node = "node-1"
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, NodeName: &node})
	}
	return source.SliceSet{Slice: s}
}

func setNode(addrs ...netip.Addr) source.Event {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	for _, a := range addrs {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	return source.NodeSet{Node: n}
}

// await polls a condition.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
