package services

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
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
	await(t, "the observation", func() bool {
		n, err := testutil.GatherAndCount(reg, metricProgramming)
		return err == nil && n == 1 // IPv6 did not change
	})
	got := histogram(t, reg, metricProgramming, "IPv4")
	if got.count != 1 || got.sum <= 0 || got.sum > took+1 {
		t.Errorf("observed %d in %v s, want 1 in at most %v s", got.count, got.sum, took)
	}
	bounds := got.bounds
	if len(bounds) != 81 || !slices.Equal(bounds[:5], []float64{0, 0.25, 0.5, 1, 2}) || !slices.Equal(bounds[60:64], []float64{58, 59, 60, 65}) || bounds[80] != 300 {
		t.Errorf("buckets %v", bounds)
	}
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
