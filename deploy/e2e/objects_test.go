package e2e

import (
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

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// manifests reads a file of deploy/kubernetes.
func manifests(file string) ([]*unstructured.Unstructured, error) {
	path := filepath.Join("..", "kubernetes", file)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	objects, err := cluster.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return objects, nil
}

// service is a Service of the scenario's namespace, with its slices.
type service struct {
	e *env
	*corev1.Service
}

// webService creates a Service of both families with port 80 of both protocols for the web pods. change
// may be nil.
func (e *env) webService(t *testing.T, name string, change func(*corev1.Service)) *service {
	t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.namespace},
		Spec: corev1.ServiceSpec{
			IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
			Ports: []corev1.ServicePort{
				{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(webPort)},
				{Name: "http-udp", Protocol: corev1.ProtocolUDP, Port: 80, TargetPort: intstr.FromInt32(webPort)},
			},
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

func (s *service) vip(v6 bool) netip.AddrPort {
	for _, ip := range s.Spec.ClusterIPs {
		if a, err := netip.ParseAddr(ip); err == nil && a.Is6() == v6 {
			return netip.AddrPortFrom(a, 80)
		}
	}
	return netip.AddrPort{}
}

func (s *service) delete(t *testing.T) {
	t.Helper()
	if err := s.e.cluster.Client().CoreV1().Services(s.Namespace).Delete(s.e.ctx, s.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete service %s: %v", s.Name, err)
	}
}

// endpoints replaces the slices by one per family with the pods, ready. Without pods they are empty.
func (s *service) endpoints(t *testing.T, pods ...*lab.Pod) {
	t.Helper()
	api := s.e.cluster.Client().DiscoveryV1().EndpointSlices(s.Namespace)
	for i, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: s.Name + "-" + strings.ToLower(string(family)), Namespace: s.Namespace,
				Labels: map[string]string{discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: "e2e"},
			},
			AddressType: family,
		}
		for _, p := range s.Spec.Ports {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: new(int32(webPort))})
		}
		for _, p := range pods {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{p.Addresses.All()[i].String()}, NodeName: new(p.Node().Name()),
				Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)},
			})
		}
		_, err := api.Update(s.e.ctx, slice, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = api.Create(s.e.ctx, slice, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatalf("write slice %s: %v", slice.Name, err)
		}
	}
}
