package model

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// size is how many Services there are, and how many endpoints each has.
type size struct{ services, endpoints int }

func (s size) String() string { return fmt.Sprintf("%dx%d", s.services, s.endpoints) }

var sizes = []size{{10, 10}, {100, 10}, {1000, 10}, {10_000, 10}, {1, 1000}, {1, 100_000}}

// plainObjects are Services with one port and their endpoints, in slices of 100 as the
// API server makes them, on 50 nodes.
func plainObjects(s size) (services []*corev1.Service, all []*discoveryv1.EndpointSlice) {
	n := 0
	for i := range s.services {
		o := svc(fmt.Sprint("service-", i), fmt.Sprintf("10.96.%d.%d", i/250, i%250+1), 80)
		for j := range s.endpoints {
			if j%100 == 0 {
				all = append(all, eps(fmt.Sprint(o.Name, "-", j/100), o.Name))
			}
			e := all[len(all)-1]
			e.Endpoints = append(e.Endpoints, ep(fmt.Sprintf("10.%d.%d.%d", 1+n/62500, n/250%250, n%250+1), on(fmt.Sprint("n", n%50))))
			n++
		}
		services = append(services, o)
	}
	return services, all
}

func load(services []*corev1.Service, all []*discoveryv1.EndpointSlice) *Model {
	m := New(Config{NodeName: "n1"})
	for _, o := range services {
		m.SetService(o)
	}
	for _, o := range all {
		m.SetSlice(o)
	}
	m.Refresh()
	return m
}

// BenchmarkLoad is all events of a start, and what becomes of them.
func BenchmarkLoad(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.String(), func(b *testing.B) {
			services, all := plainObjects(s)
			b.ReportAllocs()
			for b.Loop() {
				if m := load(services, all); len(m.records) != s.services {
					b.Fatalf("%d Services", len(m.records))
				}
			}
		})
	}
}

// benchmarkSlice sets two forms of a slice in turn: each is one event and what
// becomes of it.
func benchmarkSlice(b *testing.B, forms func(*discoveryv1.EndpointSlice) [2]*discoveryv1.EndpointSlice) {
	for _, s := range sizes {
		b.Run(s.String(), func(b *testing.B) {
			services, all := plainObjects(s)
			m, two := load(services, all), forms(all[len(all)/2])
			runtime.GC()
			b.ReportAllocs()
			n, before := 0, m.Stats().Work
			for b.Loop() {
				n++
				m.SetSlice(two[n%2])
				if c := m.Refresh(); len(c.Services) != 1 {
					b.Fatalf("%d Services changed", len(c.Services))
				}
			}
			b.ReportMetric(float64(m.Stats().Work-before)/float64(n), "work/op")
		})
	}
}

// replaced are forms of a slice that differ in the address of one endpoint.
func replaced(e *discoveryv1.EndpointSlice) [2]*discoveryv1.EndpointSlice {
	out := [2]*discoveryv1.EndpointSlice{e, e.DeepCopy()}
	out[1].Endpoints[len(e.Endpoints)/2].Addresses = []string{"10.250.0.1"}
	return out
}

// shorter are forms of a slice, one without an endpoint of the other.
func shorter(e *discoveryv1.EndpointSlice) [2]*discoveryv1.EndpointSlice {
	out := [2]*discoveryv1.EndpointSlice{e, e.DeepCopy()}
	out[1].Endpoints = slices.Delete(out[1].Endpoints, len(e.Endpoints)/2, len(e.Endpoints)/2+1)
	return out
}

// BenchmarkReplaceEndpoint is one endpoint with another address.
func BenchmarkReplaceEndpoint(b *testing.B) { benchmarkSlice(b, replaced) }

// BenchmarkAddRemoveEndpoint is one endpoint less and one more, in turn.
func BenchmarkAddRemoveEndpoint(b *testing.B) { benchmarkSlice(b, shorter) }

// BenchmarkResync is a slice of 100 endpoints that says nothing new.
func BenchmarkResync(b *testing.B) {
	services, all := plainObjects(size{1, 1000})
	m := load(services, all)
	b.ReportAllocs()
	for b.Loop() {
		m.SetSlice(all[5])
		if m.Dirty() {
			b.Fatal("a resync is something to look at")
		}
	}
}

// BenchmarkMemory reports what the model keeps, API objects freed: for Services with
// one port, and for Services with everything.
func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	for name, objects := range map[string]func() ([]*corev1.Service, []*discoveryv1.EndpointSlice){
		"10000x10":      func() ([]*corev1.Service, []*discoveryv1.EndpointSlice) { return plainObjects(size{10_000, 10}) },
		"10000x10-full": func() ([]*corev1.Service, []*discoveryv1.EndpointSlice) { return bigObjects(10_000, 10) },
		"1x100000":      func() ([]*corev1.Service, []*discoveryv1.EndpointSlice) { return plainObjects(size{1, 100_000}) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				m := func() *Model { return load(objects()) }()
				b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
				b.ReportMetric(float64(heap()-before)/100_000, "B/endpoint")
				runtime.KeepAlive(m)
			}
		})
	}
}
