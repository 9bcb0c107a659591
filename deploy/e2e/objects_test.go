package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// manifests reads a file of deploy/kubernetes.
func manifests(file string) ([]*unstructured.Unstructured, error) {
	path := filepath.Join("..", "kubernetes", file)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	objects, err := decodeObjects(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return objects, nil
}

func (w *world) createNodes(ctx context.Context) error {
	nodes := w.cluster.Client().CoreV1().Nodes()
	for _, n := range w.lab.Nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   n.Name(),
			Labels: map[string]string{corev1.LabelHostname: n.Name(), corev1.LabelTopologyZone: zoneOf(n)},
		}}
		for _, p := range n.PodCIDRs {
			node.Spec.PodCIDRs = append(node.Spec.PodCIDRs, p.String())
		}
		node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
		created, err := nodes.Create(ctx, node, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create node %s: %w", n.Name(), err)
		}
		for _, a := range n.Addresses.All() {
			created.Status.Addresses = append(created.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
		}
		if _, err := nodes.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("write addresses of node %s: %w", n.Name(), err)
		}
	}
	return nil
}

// Each node has its own zone.
func zoneOf(n *lab.Node) string { return "zone-of-" + n.Name() }

// service is a Service of the scenario's namespace, with its slices.
type service struct {
	e *env
	*corev1.Service
}

// webService creates a Service of both families with the web pods' ports of both protocols by name: 80
// for 8080, 90 for 9090. change may be nil.
func (e *env) webService(t *testing.T, name string, change func(*corev1.Service)) *service {
	t.Helper()
	policy := corev1.IPFamilyPolicyRequireDualStack
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.namespace},
		Spec: corev1.ServiceSpec{
			IPFamilyPolicy: &policy,
			Ports:          webServicePorts(),
		},
	}
	if change != nil {
		change(s)
	}
	created, err := e.cluster.Client().CoreV1().Services(e.namespace).Create(e.ctx, s, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create service %s: %v", name, err)
	}
	return &service{e: e, Service: created}
}

func webServicePorts() []corev1.ServicePort {
	return []corev1.ServicePort{
		{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromString("http")},
		{Name: "http-udp", Protocol: corev1.ProtocolUDP, Port: 80, TargetPort: intstr.FromString("http-udp")},
		{Name: "admin", Protocol: corev1.ProtocolTCP, Port: 90, TargetPort: intstr.FromString("admin")},
		{Name: "admin-udp", Protocol: corev1.ProtocolUDP, Port: 90, TargetPort: intstr.FromString("admin-udp")},
	}
}

func (s *service) vip(v6 bool, port uint16) netip.AddrPort {
	for _, ip := range s.Spec.ClusterIPs {
		if a, err := netip.ParseAddr(ip); err == nil && a.Is6() == v6 {
			return netip.AddrPortFrom(a, port)
		}
	}
	return netip.AddrPort{}
}

func (s *service) nodePort(name string) uint16 {
	for _, p := range s.Spec.Ports {
		if p.Name == name {
			return uint16(p.NodePort)
		}
	}
	return 0
}

func (s *service) delete(t *testing.T) {
	t.Helper()
	if err := s.e.cluster.Client().CoreV1().Services(s.Namespace).Delete(s.e.ctx, s.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete service %s: %v", s.Name, err)
	}
}

// endpoints replaces the slices of the suffix by one slice per family with the pods, ready. Without
// pods the slices are empty.
func (s *service) endpoints(t *testing.T, suffix string, pods ...*lab.Pod) {
	t.Helper()
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		s.apply(t, s.slice(family, suffix, pods))
	}
}

// targetPorts maps the ports of webService to the web pods' ports.
var targetPorts = map[int32]int32{80: 8080, 90: 9090}

func (s *service) slice(family discoveryv1.AddressType, suffix string, pods []*lab.Pod) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%s-%s", s.Name, suffix, strings.ToLower(string(family))), Namespace: s.Namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: "e2e"},
		},
		AddressType: family,
	}
	for _, p := range s.Spec.Ports {
		// As the endpoint controller resolves named target ports.
		name, protocol, port := p.Name, p.Protocol, targetPorts[p.Port]
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &port})
	}
	for _, p := range pods {
		address := p.Addresses.V4
		if family == discoveryv1.AddressTypeIPv6 {
			address = p.Addresses.V6
		}
		ready, node := true, s.e.nodeOf(p).Name()
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address.String()}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
		})
	}
	return slice
}

// apply creates or replaces a slice.
func (s *service) apply(t *testing.T, slice *discoveryv1.EndpointSlice) {
	t.Helper()
	slices := s.e.cluster.Client().DiscoveryV1().EndpointSlices(s.Namespace)
	old, err := slices.Get(s.e.ctx, slice.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		slice.ResourceVersion = old.ResourceVersion
		_, err = slices.Update(s.e.ctx, slice, metav1.UpdateOptions{})
	case apierrors.IsNotFound(err):
		_, err = slices.Create(s.e.ctx, slice, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatalf("write slice %s: %v", slice.Name, err)
	}
}
