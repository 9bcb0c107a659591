package render

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// size is how much there is: Services, and endpoints of each.
type size struct{ services, endpoints int }

func (s size) String() string { return fmt.Sprintf("%dx%d", s.services, s.endpoints) }

// sizes are those that the project measures itself by.
var sizes = []size{{10, 10}, {100, 10}, {1_000, 10}, {10_000, 10}, {1, 100_000}}

// sliceSize is how many endpoints the API server puts into a slice.
const sliceSize = 100

// benchAddr is the address of the n-th endpoint.
func benchAddr(n int) string {
	return netip.AddrFrom4([4]byte{10, byte(128 + n/62500), byte(n / 250 % 250), byte(n%250 + 1)}).String()
}

// benchService returns the i-th Service.
func benchService(i int) *corev1.Service {
	s := &corev1.Service{}
	s.Namespace, s.Name = "default", fmt.Sprintf("service-%d", i)
	s.Spec.ClusterIP = fmt.Sprintf("10.%d.%d.%d", 96+i/62500, i/250%250, i%250+1)
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
	return s
}

// benchSlice returns the slice of the i-th Service that begins with its from-th
// endpoint.
func (s size) benchSlice(i, from int) *discoveryv1.EndpointSlice {
	e := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	e.Namespace, e.Name = "default", fmt.Sprintf("service-%d-%d", i, from)
	e.Labels = map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("service-%d", i)}
	name, port := "http", int32(8080)
	e.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port}}
	for j := from; j < min(from+sliceSize, s.endpoints); j++ {
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{benchAddr(i*s.endpoints + j)}})
	}
	return e
}

func (s size) model() *model.Model {
	m := model.New(model.Config{NodeName: "n1"})
	for i := range s.services {
		m.SetService(benchService(i))
		for from := 0; from < s.endpoints; from += sliceSize {
			m.SetSlice(s.benchSlice(i, from))
		}
	}
	return m
}

// forms returns a renderer, and the changes between two forms of one slice.
func (s size) forms(b *testing.B, change func(*discoveryv1.EndpointSlice)) (r *Renderer, there, back model.Changes) {
	r = mustNew(b, testConfig())
	m := s.model()
	r.Load(m.Refresh())
	of, from := s.services/2, s.endpoints/2/sliceSize*sliceSize
	for range 2 {
		e := s.benchSlice(of, from)
		change(e)
		m.SetSlice(e)
		there = m.Refresh()
		m.SetSlice(s.benchSlice(of, from))
		back = m.Refresh()
	}
	r.Load(there)
	r.Load(back)
	return r, there, back
}

// BenchmarkAll is everything from parsed objects to the fragment.
func BenchmarkAll(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.String(), func(b *testing.B) {
			b.ReportAllocs()
			elements := 0
			for b.Loop() {
				b.StopTimer()
				m, r := s.model(), mustNew(b, testConfig())
				b.StartTimer()
				r.Load(m.Refresh())
				elements = 0
				for _, t := range r.Snapshot().GetTables() {
					for _, s := range append(t.GetSets(), t.GetMaps()...) {
						elements += len(s.GetElements()) + weftv1.CountPacked(s.GetPacked())
					}
				}
			}
			b.ReportMetric(float64(elements), "elements")
		})
	}
}

// BenchmarkLoad is rendering the model, without the fragment.
func BenchmarkLoad(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.String(), func(b *testing.B) {
			all := s.model().Refresh()
			b.ReportAllocs()
			for b.Loop() {
				mustNew(b, testConfig()).Load(all)
			}
		})
	}
}

// BenchmarkSnapshot is what a resync costs the frontend.
func BenchmarkSnapshot(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.String(), func(b *testing.B) {
			r := mustNew(b, testConfig())
			r.Load(s.model().Refresh())
			b.ReportAllocs()
			for b.Loop() {
				r.Snapshot()
			}
		})
	}
}

// BenchmarkRestore is a restart that finds the fragment of before: what comes on top
// of BenchmarkLoad.
func BenchmarkRestore(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.String(), func(b *testing.B) {
			r, all := mustNew(b, testConfig()), s.model().Refresh()
			r.Load(all)
			before := answered(b, r.Snapshot())
			b.ReportAllocs()
			for b.Loop() {
				r := mustNew(b, testConfig())
				r.Restore(before)
				r.Load(all)
			}
		})
	}
}

// BenchmarkUpdate is the patch of one endpoint replaced, added or removed, among all
// that there are. It reports the units of work of each.
func BenchmarkUpdate(b *testing.B) {
	replace := func(e *discoveryv1.EndpointSlice) { e.Endpoints[0].Addresses = []string{"10.200.0.1"} }
	add := func(e *discoveryv1.EndpointSlice) {
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.200.0.1"}})
	}
	remove := func(e *discoveryv1.EndpointSlice) { e.Endpoints = e.Endpoints[1:] }
	for _, s := range sizes {
		for name, change := range map[string]func(*discoveryv1.EndpointSlice){"replace": replace, "add": add, "remove": remove} {
			b.Run(s.String()+"/"+name, func(b *testing.B) {
				r, there, back := s.forms(b, change)
				var work uint64
				b.ReportAllocs()
				for b.Loop() {
					before := r.Work()
					if u := r.Update(there); u.Patch == nil {
						b.Fatal("there is no patch")
					}
					work = r.Work() - before
					b.StopTimer()
					r.Load(back)
					b.StartTimer()
				}
				b.ReportMetric(float64(work), "work")
			})
		}
	}
}

// BenchmarkMemory reports what a renderer keeps, beside the model.
func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	for _, s := range sizes {
		b.Run(s.String(), func(b *testing.B) {
			all := s.model().Refresh()
			for b.Loop() {
				before := heap()
				r := mustNew(b, testConfig())
				r.Load(all)
				kept := float64(heap() - before)
				b.ReportMetric(kept/(1<<20), "MiB")
				b.ReportMetric(kept/float64(s.services*s.endpoints), "B/endpoint")
				runtime.KeepAlive(r)
			}
			runtime.KeepAlive(all)
		})
	}
}
