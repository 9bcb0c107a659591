package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"
)

// reportTooMany is a world of one Service whose slices have endpoints in common.
type reportTooMany struct {
	r       *rand.Rand
	service *corev1.Service
	slices  map[string]*discoveryv1.EndpointSlice
	zone    string
}

func newCrowd(seed uint64) *reportTooMany {
	w := &reportTooMany{r: rand.New(rand.NewPCG(seed, 1)), slices: make(map[string]*discoveryv1.EndpointSlice)}
	w.service = svc("web", "10.96.0.1", 80, 81)
	w.service.Spec.Ports[1].Protocol = corev1.ProtocolUDP
	w.service.Spec.ClusterIPs = append(w.service.Spec.ClusterIPs, "fd00::1")
	w.service.Spec.Type, w.service.Spec.HealthCheckNodePort = corev1.ServiceTypeLoadBalancer, 32000
	return w
}

// endpoint is any endpoint: most of them are usual ones, so that decisions stay.
func (w *reportTooMany) endpoint(six bool) discoveryv1.Endpoint {
	text := fmt.Sprintf("10.1.0.%d", w.r.IntN(150)+1)
	if six {
		text = fmt.Sprintf("fd00:1::%d", w.r.IntN(150)+1)
	}
	e := ep(text, on(fmt.Sprint("n", w.r.IntN(3))))
	if w.r.IntN(4) == 0 {
		conditions(w.r.IntN(2) == 0, w.r.IntN(3) > 0, w.r.IntN(2) == 0)(&e)
	}
	if w.r.IntN(40) > 0 {
		zones([]string{"a", "b", "c"}[w.r.IntN(3)])(&e)
	}
	if w.r.IntN(40) > 0 {
		nodes([]string{"n1", "n2", "n3", "n4"}[w.r.IntN(4)])(&e)
	}
	return e
}

// slice is a new slice.
func (w *reportTooMany) slice(name string) *discoveryv1.EndpointSlice {
	e := eps(name, "web")
	six := w.r.IntN(3) == 0
	if six {
		e.AddressType = discoveryv1.AddressTypeIPv6
	}
	udp, udpName, number := corev1.ProtocolUDP, "p81", int32(8080+w.r.IntN(2))
	e.Ports[0].Port = &number
	if w.r.IntN(4) > 0 {
		e.Ports = append(e.Ports, discoveryv1.EndpointPort{Name: &udpName, Protocol: &udp, Port: &number})
	}
	for range w.r.IntN(100) {
		e.Endpoints = append(e.Endpoints, w.endpoint(six))
	}
	return e
}

// step changes something in the world and in a model.
func (w *reportTooMany) step(m *Model) {
	name := fmt.Sprint("s", w.r.IntN(6))
	e := w.slices[name]
	switch n := w.r.IntN(40); {
	case n == 0 && e != nil:
		delete(w.slices, name)
		m.DeleteSlice(key(name))
	case n == 1:
		local := []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster}
		w.service.Spec.ExternalTrafficPolicy = local[w.r.IntN(2)]
		m.SetService(w.service)
	case n == 2:
		w.zone = []string{"", "a", "b"}[w.r.IntN(3)]
		m.SetNode(w.node())
	case n == 3:
		m.DeleteService(key("web"))
		if w.r.IntN(2) == 0 {
			m.Refresh()
		}
		m.SetService(w.service)
	case n < 8 || e == nil || len(e.Endpoints) == 0:
		w.slices[name] = w.slice(name)
		m.SetSlice(w.slices[name])
	default:
		e = e.DeepCopy()
		for range w.r.IntN(3) + 1 {
			i := w.r.IntN(len(e.Endpoints))
			switch w.r.IntN(4) {
			case 0:
				e.Endpoints = append(e.Endpoints, e.Endpoints[i])
			case 1:
				e.Endpoints[i] = e.Endpoints[len(e.Endpoints)-1]
				if len(e.Endpoints) > 1 {
					e.Endpoints = e.Endpoints[:len(e.Endpoints)-1]
				}
			default:
				e.Endpoints[i] = w.endpoint(e.AddressType == discoveryv1.AddressTypeIPv6)
			}
		}
		w.slices[name] = e
		m.SetSlice(e)
	}
}

func (w *reportTooMany) node() *corev1.Node {
	n := node("n1", "192.0.2.1")
	n.Labels[corev1.LabelTopologyZone] = w.zone
	return n
}

// fresh is the outcome of a model that looks at everything, once.
func (w *reportTooMany) fresh() *Service {
	m := New(Config{NodeName: "n1"})
	m.largeSize = 1 << 30
	m.SetNode(w.node())
	m.SetService(w.service)
	for _, e := range w.slices {
		m.SetSlice(e)
	}
	m.Refresh()
	return m.Service(key("web"))
}

// TestLargeIsAsSmall: after every event, a Service with kept merged lists is equal to one
// computed from all slices at once.
func TestLargeIsAsSmall(t *testing.T) {
	deltas, wholes, localReady := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newCrowd(rapid.Uint64().Draw(t, "seed"))
		m := New(Config{NodeName: "n1"})
		m.largeSize = pick(t, "a lot", 1, 1, 300)
		m.SetNode(w.node())
		m.SetService(w.service)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			before := m.merges()
			for range rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(t, "events") {
				w.step(m)
			}
			m.Refresh()
			if got, want := m.Service(key("web")), w.fresh(); !equalService(got, want) {
				t.Fatalf("%+v\nwant %+v", got, want)
			} else if got.LocalReady != [NumFamilies]int{} {
				localReady++
			}
			for of, list := range m.merges() {
				if was, ok := before[of]; ok && was != list {
					deltas++
				} else if !ok {
					wholes++
				}
			}
		}
	})
	if deltas < 30 || wholes < 30 || localReady < 30 {
		t.Errorf("%d deltas, %d whole computations, %d times endpoints for load balancers: the test is too small", deltas, wholes, localReady)
	}
}

// merges returns the merged lists that are kept of the Service web.
func (m *Model) merges() map[source]string {
	if r := m.records[key("web")]; r != nil {
		return maps.Clone(r.merged)
	}
	return nil
}

// TestSmallKeepsNothing: merged lists are kept only for a large Service and its present ports.
func TestSmallKeepsNothing(t *testing.T) {
	m := New(Config{NodeName: "n1"})
	m.SetService(svc("web", "10.96.0.1", 80, 81))
	set := func(n int) {
		e := eps("a", "web")
		for i := range n {
			e.Endpoints = append(e.Endpoints, ep(fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)))
		}
		m.SetSlice(e)
		m.Refresh()
	}
	for _, tt := range []struct{ endpoints, lists int }{{100, 0}, {600, 2}, {300, 2}, {127, 0}, {600, 2}} {
		if set(tt.endpoints); len(m.merges()) != tt.lists {
			t.Errorf("%d endpoints: %d lists, want %d", tt.endpoints, len(m.merges()), tt.lists)
		}
	}
	m.SetService(svc("web", "10.96.0.1", 80))
	if m.Refresh(); len(m.merges()) != 1 {
		t.Errorf("%d lists for one port", len(m.merges()))
	}
	m.DeleteService(key("web"))
	if m.Refresh(); len(m.merges()) != 0 {
		t.Error("a Service that is gone is kept")
	}
}
