package services

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/prometheus/client_golang/prometheus"
)

// balanced makes the Service of setService one of a load balancer that asks on a
// port.
func balanced(name string, port int32, policy corev1.ServiceExternalTrafficPolicy, ip string) *corev1.Service {
	e := setService(name, 30080, ip)
	e.Spec.Type = corev1.ServiceTypeLoadBalancer
	e.Spec.ExternalTrafficPolicy = policy
	e.Spec.HealthCheckNodePort = port
	return e
}

// TestServiceHealthFromEvents follows a Service of a load balancer from its events to
// what the load balancer is told.
//
// Behaviour: 117, 118, 121, 123.
func TestServiceHealthFromEvents(t *testing.T) {
	fake, network := newFake(t), ports{t.TempDir()}
	src := newScript(balanced("web", 32000, corev1.ServiceExternalTrafficPolicyLocal, "10.96.0.1"), setSlice("web", ipv4, "10.244.0.1*", "10.244.0.2"))
	_, _ = run(t, Config{Source: src, Socket: fake.Socket, Network: network})
	expect := func(address, want string) {
		t.Helper()
		await(t, address+" "+want, func() bool { return network.ask(address) == want })
	}
	expect("0.0.0.0:32000", "200 1")
	// The Service has no IPv6.
	expect("[::]:32000", "closed")
	// Both ports of the Service have both addresses: they count once.
	src.deliver(setSlice("web", ipv4, "10.244.0.1*", "10.244.0.3*", "10.244.0.2"))
	expect("0.0.0.0:32000", "200 2")
	// Terminating endpoints serve, and do not count.
	leaving := setSlice("web", ipv4, "10.244.0.1*", "10.244.0.3*")
	for i := range leaving.Endpoints {
		c := &leaving.Endpoints[i].Conditions
		c.Ready, c.Serving, c.Terminating = ptr.To(false), ptr.To(true), ptr.To(true)
	}
	src.deliver(leaving)
	expect("0.0.0.0:32000", "503 0")
	src.deliver(balanced("web", 32001, corev1.ServiceExternalTrafficPolicyLocal, "10.96.0.1"), setSlice("web", ipv4, "10.244.0.1*"))
	expect("0.0.0.0:32001", "200 1")
	expect("0.0.0.0:32000", "closed")
	src.deliver(balanced("web", 32001, corev1.ServiceExternalTrafficPolicyCluster, "10.96.0.1"))
	expect("0.0.0.0:32001", "closed")
	src.deliver(balanced("web", 32001, corev1.ServiceExternalTrafficPolicyLocal, "10.96.0.1"))
	expect("0.0.0.0:32001", "200 1")
	src.deliver(serviceGone("web"))
	expect("0.0.0.0:32001", "closed")
}

// TestProgrammingLatencyFromEvents has an EndpointSlice say when it changed in the
// cluster.
//
// Behaviour: 158.
func TestProgrammingLatencyFromEvents(t *testing.T) {
	fake := newFake(t)
	reg := prometheus.NewPedanticRegistry()
	src := newScript(many(1)...)
	f, _ := run(t, Config{Source: src, Socket: fake.Socket, Registerer: reg})
	await(t, "the first commit", func() bool { return f.Status().Published && f.Status().Pending.IsZero() })
	at := time.Now().UTC()
	e := setSlice("s0", ipv4, "10.244.9.9")
	e.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: at.Format(time.RFC3339Nano)}
	src.deliver(e)
	await(t, "the commit", func() bool { return f.Status().Revision == 2 && f.Status().Pending.IsZero() })
	took := time.Since(at).Seconds()
	await(t, "the observation", func() bool { return has(t, reg, "IPv4") })
	if got := histogram(t, reg, metricProgramming, "IPv4"); got.count != 1 || got.sum <= 0 || got.sum > took+1 {
		t.Errorf("observed %d in %v s, want 1 in at most %v s", got.count, got.sum, took)
	}
	if has(t, reg, "IPv6") {
		t.Error("IPv6 did not change")
	}
}

// TestZoneChangesAtOnce moves the node to another zone: the Services whose endpoints
// have hints are published anew at once.
//
// Behaviour: 73, 137.
func TestZoneChangesAtOnce(t *testing.T) {
	zone := func(name string) *corev1.Node {
		e := setNode()
		e.Labels = map[string]string{corev1.LabelTopologyZone: name}
		return e
	}
	slice := setSlice("s0", ipv4, "10.244.0.1", "10.244.0.2")
	for i, z := range []string{"a", "b"} {
		slice.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: z}}}
	}
	fake := newFake(t)
	src := newScript(setService("s0", 0, "10.96.0.1"), slice, zone("a"))
	_, _ = run(t, Config{Source: src, Socket: fake.Socket})
	// first is where the only slot leads to.
	first := func() string {
		if fake.Elements()[object("ip", "endpoints", "10.96.0.1 . tcp . 80 . 1")] != "" {
			return "several"
		}
		return fake.Elements()[object("ip", "endpoints", "10.96.0.1 . tcp . 80 . 0")]
	}
	await(t, "zone a", func() bool { return first() == "10.244.0.1 . 8080" })
	src.deliver(zone("b"))
	await(t, "zone b", func() bool { return first() == "10.244.0.2 . 8080" })
	src.deliver(zone(""))
	await(t, "no zone", func() bool { return first() == "several" })
}

// has reports whether there is a programming latency of a family.
func has(t *testing.T, reg prometheus.Gatherer, family string) bool {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, mf := range all {
		if mf.GetName() != metricProgramming {
			continue
		}
		for _, m := range mf.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == family {
					return true
				}
			}
		}
	}
	return false
}

// TestConflictIsAnEvent tells the owner of the younger Service that another one has
// its address.
//
// Behaviour: 37.
func TestConflictIsAnEvent(t *testing.T) {
	fake := newFake(t)
	var events notes
	older, younger := setService("older", 0, "10.96.0.1"), setService("younger", 0, "10.96.0.1")
	older.CreationTimestamp.Time = time.Unix(1000, 0)
	younger.CreationTimestamp.Time = time.Unix(2000, 0)
	// Of two other Services that conflict, neither has an endpoint on this node.
	other, another := setService("other", 0, "10.96.0.2"), setService("another", 0, "10.96.0.2")
	f, _ := run(t, Config{Source: newScript(
		other, another, younger, older, setSlice("other", ipv4, "10.244.0.2"), setSlice("another", ipv4, "10.244.0.3"), setSlice("older", ipv4, "10.244.0.1*"),
	), Socket: fake.Socket, Events: &events})
	await(t, "the event", func() bool { return strings.Contains(events.String(), "default/younger Warning AddressConflict ") })
	await(t, "the commit", func() bool { return f.Status().Published })
	if got := events.String(); strings.Count(got, "Warning") != 1 {
		t.Errorf("events:\n%s", got)
	}
}
