package model

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// thousand is a Service with 1,000 endpoints in slices of 100, as the API server
// makes them, and two forms of one of the slices that differ in one endpoint.
func thousand() (*corev1.Service, []*discoveryv1.EndpointSlice, [2]*discoveryv1.EndpointSlice) {
	var all []*discoveryv1.EndpointSlice
	for i := range 10 {
		e := eps(fmt.Sprint("s", i), "web")
		for j := range 100 {
			e.Endpoints = append(e.Endpoints, ep(fmt.Sprintf("10.1.%d.%d", i, j+1), on(fmt.Sprint("n", j%50))))
		}
		all = append(all, e)
	}
	forms := [2]*discoveryv1.EndpointSlice{all[5], all[5].DeepCopy()}
	forms[1].Endpoints[50].Addresses = []string{"10.2.0.1"}
	return svc("web", "10.96.0.1", 80), all, forms
}

// BenchmarkOneOfThousand is one changed endpoint of a Service with 1,000, among
// 10,000 other Services: the event and what becomes of it.
func BenchmarkOneOfThousand(b *testing.B) {
	m := New(Config{NodeName: "n1"})
	services, slices := bigObjects(10_000, 1)
	for i := range services {
		m.SetService(services[i])
		m.SetSlice(slices[i])
	}
	s, all, forms := thousand()
	m.SetService(s)
	for _, e := range all {
		m.SetSlice(e)
	}
	m.Refresh()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		m.SetSlice(forms[n%2])
		if c := m.Refresh(); len(c.Services) != 1 {
			b.Fatalf("%d Services changed", len(c.Services))
		}
	}
}

// BenchmarkResync is a slice of 100 endpoints that says nothing new.
func BenchmarkResync(b *testing.B) {
	m := New(Config{NodeName: "n1"})
	s, all, _ := thousand()
	m.SetService(s)
	for _, e := range all {
		m.SetSlice(e)
	}
	m.Refresh()
	b.ReportAllocs()
	for b.Loop() {
		m.SetSlice(all[5])
		if m.Dirty() {
			b.Fatal("a resync is something to look at")
		}
	}
}

// BenchmarkMemory reports what the model keeps of 10,000 Services with 10
// endpoints each, API objects freed.
func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		m := New(Config{NodeName: "n1"})
		func() {
			services, slices := bigObjects(10_000, 10)
			for i := range services {
				m.SetService(services[i])
				m.SetSlice(slices[i])
			}
			m.Refresh()
		}()
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		b.ReportMetric(float64(heap()-before)/100_000, "B/endpoint")
		runtime.KeepAlive(m)
	}
}
