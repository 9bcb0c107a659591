package model

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// object is one that exists, or has existed.
type object struct {
	apitest.Object
	gone bool
}

// objects are all of them, by kind and name.
type objects map[string]object

// set gives a model an object, or takes it away.
func set(m *Model, o apitest.Object, gone bool) {
	switch o := o.(type) {
	case *corev1.Service:
		if gone {
			m.DeleteService(key(o.Name))
		} else {
			m.SetService(o)
		}
	case *discoveryv1.EndpointSlice:
		if gone {
			m.DeleteSlice(key(o.Name))
		} else {
			m.SetSlice(o)
		}
	case *networkingv1.ServiceCIDR:
		if gone {
			m.DeleteServiceCIDR(o.Name)
		} else {
			m.SetServiceCIDR(o)
		}
	case *corev1.Node:
		if gone {
			m.DeleteNode(o.Name)
		} else {
			m.SetNode(o)
		}
	}
}

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

// some returns a part of what it is given.
func some(t *rapid.T, label string, from ...string) (out []string) {
	for _, s := range from {
		if rapid.Bool().Draw(t, label) {
			out = append(out, s)
		}
	}
	return out
}

// drawObject is a Service that shares addresses, ports and NodePorts with others.
func drawObject(t *rapid.T, name string) *corev1.Service {
	s := at(svc(name, pick(t, "ip", "10.96.0.1", "10.96.0.2", "203.0.113.1", "None")), pick(t, "age", 1, 1, 2, 3))
	if six := pick(t, "second ip", "", "fd00::1", "fd00::2"); six != "" && s.Spec.ClusterIP != "None" {
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, six)
	}
	for i, n := range []int32{80, 81, 82} {
		if rapid.Bool().Draw(t, "port") {
			p := corev1.ServicePort{Name: fmt.Sprint("p", n), Port: 80 + int32(pick(t, "shift", 0, i)), Protocol: pick(t, "protocol", corev1.ProtocolTCP, corev1.ProtocolUDP)}
			p.NodePort = pick(t, "nodePort", int32(0), 30080, 30081)
			s.Spec.Ports = append(s.Spec.Ports, p)
		}
	}
	s.Spec.Type = pick(t, "type", corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer)
	s.Spec.ExternalIPs = some(t, "external", "203.0.113.1", "203.0.113.2", "2001:db8::1", "bad")
	s.Status.LoadBalancer.Ingress = ingress(some(t, "ingress", "203.0.113.1", "203.0.113.3", "2001:db8::1")...)
	s.Spec.LoadBalancerSourceRanges = some(t, "range", "192.0.2.0/24", "198.51.100.0/24", "bad")
	s.Spec.SessionAffinity = pick(t, "affinity", corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	s.Spec.ExternalTrafficPolicy = pick(t, "external policy", corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	s.Spec.InternalTrafficPolicy = pick(t, "internal policy", nil, new(corev1.ServiceInternalTrafficPolicyLocal))
	s.Spec.HealthCheckNodePort = pick(t, "health port", int32(32000), 32001)
	if rapid.Bool().Draw(t, "foreign") && rapid.Bool().Draw(t, "really") {
		s.Labels = map[string]string{proxyNameLabel: "x"}
	}
	return s
}

func drawSlice(t *rapid.T, name string, services []string) *discoveryv1.EndpointSlice {
	e := eps(name, pick(t, "service", append(services, "")...))
	e.Ports[0].Port = pick(t, "number", new(int32(8080)), new(int32(9090)))
	e.Ports[0].Protocol = pick(t, "protocol", new(corev1.ProtocolTCP), new(corev1.ProtocolUDP))
	if pick(t, "family", 0, 0, 1) == 1 {
		e.AddressType = discoveryv1.AddressTypeIPv6
	}
	for i := range 6 {
		i %= 4 // two addresses may repeat
		if rapid.Bool().Draw(t, "endpoint") {
			continue
		}
		text := fmt.Sprintf("10.1.0.%d", i)
		if e.AddressType == discoveryv1.AddressTypeIPv6 {
			text = fmt.Sprintf("fd00:1::%d", i+1)
		}
		o := ep(text, on(pick(t, "node", "n1", "n2")), conditions(rapid.Bool().Draw(t, "ready"), rapid.Bool().Draw(t, "serving"), rapid.Bool().Draw(t, "terminating")))
		if pick(t, "hints", 0, 1, 1) == 1 {
			zones(some(t, "zone", "a", "b")...)(&o)
			nodes(some(t, "nodes", "n1", "n2")...)(&o)
		}
		e.Endpoints = append(e.Endpoints, o)
	}
	return e
}

// draw is an object of any kind.
func draw(t *rapid.T) apitest.Object {
	names := []string{"a", "b", "c", "d"}
	name := pick(t, "name", names...)
	switch pick(t, "kind", "service", "service", "slice", "slice", "slice", "node", "cidr") {
	case "service":
		return drawObject(t, name)
	case "slice":
		return drawSlice(t, name, names)
	case "node":
		n := node("n1", some(t, "addresses", "192.0.2.1", "198.51.100.1")...)
		n.Labels[corev1.LabelTopologyZone] = pick(t, "zone", "", "a", "b", "c")
		return n
	default:
		return serviceCIDRObject(name, some(t, "cidr", "10.96.0.0/16", "10.97.0.0/16", "fd00::/64")...)
	}
}

// step changes one object in the world and in a model.
func (w objects) step(t *rapid.T, m *Model) {
	o := draw(t)
	id := fmt.Sprintf("%T %s", o, o.GetName())
	had, ok := w[id]
	switch pick(t, "event", "set", "set", "gone", "again") {
	case "set":
		w[id] = object{o, false}
		set(m, o, false)
	case "gone":
		set(m, o, true)
		if ok {
			w[id] = object{had.Object, true}
		}
	case "again":
		if ok && !had.gone {
			set(m, had.DeepCopyObject().(apitest.Object), false)
		}
	}
}

// fresh is a model of what there is, in any order. A Node that is gone leaves something.
func (w objects) fresh(t *rapid.T) *Model {
	m := New(Config{NodeName: "n1"})
	for _, id := range rapid.Permutation(slices.Sorted(maps.Keys(w))).Draw(t, "order") {
		set(m, w[id].Object, false)
		if w[id].gone {
			set(m, w[id].Object, true)
		}
		if rapid.Bool().Draw(t, "refresh") {
			m.Refresh()
		}
	}
	m.Refresh()
	return m
}

// mirror is the state as known from changes alone.
type mirror struct {
	services map[Key]*Service
	node     Node
	cidrs    Prefixes
	revision uint64
}

func (r *mirror) take(t *rapid.T, c Changes) {
	if !c.Empty() {
		r.revision++
	}
	for _, s := range c.Services {
		if r.services[s.Name] != s.Old || equalService(s.Old, s.New) {
			t.Fatalf("change of %s from %+v to %+v: before it was %+v", s.Name, s.Old, s.New, r.services[s.Name])
		}
		if s.New == nil {
			delete(r.services, s.Name)
		} else {
			r.services[s.Name] = s.New
		}
	}
	if c.Node != nil {
		if equalNode(r.node, *c.Node) {
			t.Fatalf("the node changed to what it was: %+v", r.node)
		}
		r.node = *c.Node
	}
	if c.ServiceCIDRs != nil {
		if equalPrefixes(&r.cidrs, c.ServiceCIDRs) {
			t.Fatalf("the service CIDRs changed to what they were: %v", r.cidrs)
		}
		r.cidrs = *c.ServiceCIDRs
	}
}

// served fails if a port of an address, or a NodePort, is served for two
// Services.
func served(t *rapid.T, s Snapshot) {
	by := make(map[claim]Key)
	for _, svc := range s.Services {
		for i := range svc.Ports {
			p := &svc.Ports[i]
			take := func(a netip.Addr, n uint16) {
				k := claim{addr: a, protocol: p.Protocol, port: n}
				if other, ok := by[k]; ok {
					t.Fatalf("%s is served for %s and for %s", k, other, svc.Name)
				}
				by[k] = svc.Name
			}
			for f := range NumFamilies {
				if p.ClusterIPs[f].IsValid() {
					take(p.ClusterIPs[f], p.Number)
				}
				for _, e := range p.External[f] {
					take(e.Addr, p.Number)
				}
			}
			if p.NodePort != 0 {
				take(netip.Addr{}, p.NodePort)
			}
		}
	}
}

// TestOutcomeDependsOnObjectsAlone: after any events in any order, the outcome is
// that of a model with only the present objects, and the changes add up to it.
//
// Behaviour: 37, 66, 67, 70.
func TestOutcomeDependsOnObjectsAlone(t *testing.T) {
	addr := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	prefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	port := cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
	rapid.Check(t, func(t *rapid.T) {
		w, m := make(objects), New(Config{NodeName: "n1"})
		m.lists.largeSize = pick(t, "a lot", 1, 10, largeSize)
		r := &mirror{services: make(map[Key]*Service)}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.step(t, m)
			if rapid.Bool().Draw(t, "refresh") {
				r.take(t, m.Refresh())
			}
		}
		r.take(t, m.Refresh())
		if m.Dirty() {
			t.Fatal("there is something to look at right after Refresh")
		}
		got, fresh := m.Snapshot(), w.fresh(t)
		want := fresh.Snapshot()
		if m.Stats().Conflicts != fresh.Stats().Conflicts || m.Stats().Services != fresh.Stats().Services || m.Stats().Slices != fresh.Stats().Slices {
			t.Errorf("stats %+v, of a fresh model %+v", m.Stats(), fresh.Stats())
		}
		if got.Revision != r.revision {
			t.Errorf("revision %d after %d changes", got.Revision, r.revision)
		}
		got.Revision, want.Revision = 0, 0
		if diff := cmp.Diff(want, got, addr, prefix, port); diff != "" {
			t.Errorf("the outcome depends on history (-fresh +model):\n%s", diff)
		}
		heard := Snapshot{Node: r.node, ServiceCIDRs: r.cidrs, Services: make([]*Service, 0)}
		for _, k := range slices.SortedFunc(maps.Keys(r.services), CompareKeys) {
			heard.Services = append(heard.Services, r.services[k])
		}
		if diff := cmp.Diff(got, heard, addr, prefix, port); diff != "" {
			t.Errorf("changes and snapshot differ (-snapshot +changes):\n%s", diff)
		}
		served(t, got)
	})
}
