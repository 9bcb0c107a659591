package render

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// The size that the project measures itself by.
const (
	benchServices  = 10_000
	benchEndpoints = 10
)

// benchService returns the i-th Service and its slice; replaced shifts the first endpoint.
func benchService(i, replaced int) (*corev1.Service, *discoveryv1.EndpointSlice) {
	s := &corev1.Service{}
	s.Namespace, s.Name = "default", fmt.Sprintf("service-%d", i)
	s.Spec.ClusterIP = fmt.Sprintf("10.%d.%d.%d", 96+i/62500, i/250%250, i%250+1)
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
	e := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	e.Namespace, e.Name = "default", s.Name+"-x"
	e.Labels = map[string]string{discoveryv1.LabelServiceName: s.Name}
	name, port := "http", int32(8080)
	e.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port}}
	for j := range benchEndpoints {
		n := i*benchEndpoints + j
		addr := fmt.Sprintf("10.%d.%d.%d", 128+n/62500, n/250%250, n%250+1)
		if j == 0 && replaced > 0 {
			addr = fmt.Sprintf("10.200.0.%d", replaced)
		}
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr}})
	}
	return s, e
}

func benchModel() *model.Model {
	m := model.New(model.Config{NodeName: "n1"})
	for i := range benchServices {
		s, e := benchService(i, 0)
		m.SetService(s)
		m.SetSlice(e)
	}
	return m
}

// BenchmarkAll is everything from parsed objects to the fragment: 110,000
// elements and the addresses.
func BenchmarkAll(b *testing.B) {
	b.ReportAllocs()
	elements := 0
	for b.Loop() {
		b.StopTimer()
		m, r := benchModel(), mustNew(b, testConfig())
		b.StartTimer()
		r.Load(m.Refresh())
		elements = 0
		for _, t := range r.Snapshot().GetTables() {
			for _, s := range append(t.GetSets(), t.GetMaps()...) {
				elements += len(s.GetElements())
			}
		}
	}
	b.ReportMetric(float64(elements), "elements")
}

// BenchmarkSnapshot is what a resync costs the frontend.
func BenchmarkSnapshot(b *testing.B) {
	r := mustNew(b, testConfig())
	m := benchModel()
	r.Update(m.Refresh())
	b.ReportAllocs()
	for b.Loop() {
		r.Snapshot()
	}
}

// BenchmarkIntake is what the events of all Services and slices cost.
func BenchmarkIntake(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		benchModel()
	}
}

// BenchmarkReplaceEndpoint is one endpoint replaced among all: event, model,
// patch.
func BenchmarkReplaceEndpoint(b *testing.B) {
	r := mustNew(b, testConfig())
	m := benchModel()
	r.Update(m.Refresh())
	var slices [2]*discoveryv1.EndpointSlice
	for i := range slices {
		_, slices[i] = benchService(benchServices/2, i+1)
	}
	m.SetSlice(slices[1])
	r.Update(m.Refresh())
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		m.SetSlice(slices[n%2])
		n++
		if u := r.Update(m.Refresh()); u.Added != 1 || u.Removed != 0 {
			b.Fatalf("%d added, %d removed: want one replaced", u.Added, u.Removed)
		}
	}
}
