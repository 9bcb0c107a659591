package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// svc returns a Service "default/name" with one TCP port per number, named after it.
func svc(name, clusterIP string, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = clusterIP, []string{clusterIP}
	for _, n := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", n), Port: n})
	}
	return s
}

// eps returns a slice of a Service with a port p80 -> 8080.
func eps(name, service string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	port, pname := int32(8080), "p80"
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &pname, Port: &port}},
		Endpoints:   endpoints,
	}
}

func ep(addr string, options ...func(*discoveryv1.Endpoint)) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{addr}}
	for _, o := range options {
		o(&e)
	}
	return e
}

func conditions(ready, serving, terminating bool) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) {
		e.Conditions = discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
	}
}

func on(node string) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) { e.NodeName = &node }
}

func key(name string) Key { return Key{Namespace: "default", Name: name} }

// text lists endpoints for comparison.
func text(list Endpoints) string {
	in := slices.Collect(list.All())
	var out []string
	for _, e := range in {
		s := e.Addr.String()
		if e.Local {
			s += "*"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// node returns a Node with internal addresses.
func node(name string, addrs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, a := range addrs {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

func serviceCIDRObject(name string, ranges ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
}

func zones(names ...string) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) {
		if e.Hints == nil {
			e.Hints = &discoveryv1.EndpointHints{}
		}
		for _, n := range names {
			e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: n})
		}
	}
}

func nodes(names ...string) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) {
		if e.Hints == nil {
			e.Hints = &discoveryv1.EndpointHints{}
		}
		for _, n := range names {
			e.Hints.ForNodes = append(e.Hints.ForNodes, discoveryv1.ForNode{Name: n})
		}
	}
}

// at sets when a Service was created.
func at(s *corev1.Service, minute int) *corev1.Service {
	s.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
	return s
}

func ingress(ips ...string) (out []corev1.LoadBalancerIngress) {
	for _, text := range ips {
		ip, mode, _ := strings.Cut(text, "/")
		in := corev1.LoadBalancerIngress{IP: ip}
		if mode != "" {
			m := corev1.LoadBalancerIPMode(mode)
			in.IPMode = &m
		}
		out = append(out, in)
	}
	return out
}

func externalText(in [NumFamilies][]External) string {
	var out []string
	for _, all := range in {
		for _, e := range all {
			s := e.Addr.String()
			if e.LoadBalancer {
				s += "(lb)"
			}
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

func triggered(s *discoveryv1.EndpointSlice, when string) *discoveryv1.EndpointSlice {
	s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: when}
	return s
}
