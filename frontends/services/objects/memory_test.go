package objects

import (
	"runtime"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source/apitest"
)

// heap returns the bytes that are in use.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkMemory is what 10,000 slices with 10 endpoints each cost a node that
// keeps them whole, trimmed, or in the model. The source keeps only their versions.
func BenchmarkMemory(b *testing.B) {
	const slices, endpoints = 10_000, 10
	cache := func(trimmed bool) (func(*discoveryv1.EndpointSlice), any) {
		kept := make(map[string]any)
		return func(s *discoveryv1.EndpointSlice) {
			if trimmed {
				trimSlice(s)
			}
			kept[s.Namespace+"/"+s.Name] = s
		}, kept
	}
	into := func(m *model.Model) (func(*discoveryv1.EndpointSlice), any) {
		return func(o *discoveryv1.EndpointSlice) { m.SetSlice(trimSlice(o)) }, m
	}
	for _, tt := range []struct {
		name string
		open func() (take func(*discoveryv1.EndpointSlice), kept any)
	}{
		{"whole", func() (func(*discoveryv1.EndpointSlice), any) { return cache(false) }},
		{"trimmed", func() (func(*discoveryv1.EndpointSlice), any) { return cache(true) }},
		{"model", func() (func(*discoveryv1.EndpointSlice), any) { return into(model.New(model.Config{})) }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				take, kept := tt.open()
				for n := range slices {
					take(apitest.FullSlice(b, n, endpoints))
				}
				b.ReportMetric((heap()-before)/(1<<20), "MiB")
				runtime.KeepAlive(kept)
				runtime.KeepAlive(take)
			}
		})
	}
}
