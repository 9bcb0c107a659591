package source

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source/apitest"
)

// modelled is a receiver that keeps a model, refreshed after every batch.
type modelled struct {
	*recorder
	mu    sync.Mutex
	model *model.Model
	// seen are the forms that the Services had after each batch, without
	// repeats.
	seen []string
}

func newModelled() *modelled {
	return &modelled{recorder: newRecorder(), model: model.New(model.Config{NodeName: "n1"})}
}

func (m *modelled) deliver(events []Event) {
	m.mu.Lock()
	for _, e := range events {
		switch e := e.(type) {
		case ServiceSet:
			m.model.SetService(e.Service)
		case ServiceGone:
			m.model.DeleteService(e.Name)
		case SliceSet:
			m.model.SetSlice(e.Slice)
		case SliceGone:
			m.model.DeleteSlice(e.Name)
		}
	}
	m.model.Refresh()
	var all []string
	for _, s := range m.model.Snapshot().Services {
		var addrs []string
		for i := range s.Ports {
			for _, b := range s.Ports[i].Backends {
				for e := range b.Cluster.All() {
					addrs = append(addrs, e.Addr.String())
				}
			}
		}
		all = append(all, fmt.Sprintf("%s=%s", s.Name.Name, strings.Join(addrs, ",")))
	}
	if now := strings.Join(all, " "); len(m.seen) == 0 || m.seen[len(m.seen)-1] != now {
		m.seen = append(m.seen, now)
	}
	m.mu.Unlock()
	m.recorder.deliver(events)
}

// awaitSeen waits until the Services have a form, and returns all until then.
func (m *modelled) awaitSeen(t *testing.T, want string) []string {
	t.Helper()
	var seen []string
	m.until(t, want, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		seen = slices.Clone(m.seen)
		return len(seen) > 0 && seen[len(seen)-1] == want
	})
	return seen
}

// sliceOf is a slice of a Service with the port 8080.
func sliceOf(service, name string, family discoveryv1.AddressType, addrs ...string) *discoveryv1.EndpointSlice {
	s := kubeSlice(name, addrs...)
	port, protocol, text := int32(8080), corev1.ProtocolTCP, ""
	s.AddressType = family
	s.Ports = []discoveryv1.EndpointPort{{Name: &text, Port: &port, Protocol: &protocol}}
	if service != "" {
		s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	}
	return s
}

// TestModelAnyOrder has Services before their slices and slices before their
// Services, in lists and in watches.
//
// Behaviour: 70.
func TestModelAnyOrder(t *testing.T) {
	for _, late := range []string{"services", "endpointslices"} {
		t.Run(late+" last", func(t *testing.T) {
			api := apitest.New(t)
			api.Set(kubeService("a", "10.96.0.1"), sliceOf("a", "a-1", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
			hold := make(chan struct{})
			api.Fault(func(q apitest.Request) apitest.Fault {
				if q.Resource == late && q.N == 1 {
					return apitest.Fault{Hold: hold}
				}
				return apitest.Fault{}
			})
			m := newModelled()
			follow(t, kubeOf(t, api, KubeConfig{}), m.deliver)
			m.until(t, "the other kind", func() bool { return len(m.objects) == 1 })
			close(hold)
			m.awaitSeen(t, "a=10.1.0.1:8080")

			b, slice := kubeService("b", "10.96.0.2"), sliceOf("b", "b-1", discoveryv1.AddressTypeIPv4, "10.1.0.2")
			if late == "services" {
				api.Set(slice)
				m.until(t, "the slice", func() bool { return m.objects["EndpointSlice default/b-1"] != "" })
				api.Set(b)
			} else {
				api.Set(b)
				m.awaitSeen(t, "a=10.1.0.1:8080 b=")
				api.Set(slice)
			}
			m.awaitSeen(t, "a=10.1.0.1:8080 b=10.1.0.2:8080")
		})
	}
}

// TestModelMove moves an endpoint from one slice to another: between the two
// events it is in both or in the one, never in none.
//
// Behaviour: 67.
func TestModelMove(t *testing.T) {
	api := apitest.New(t)
	v4 := discoveryv1.AddressTypeIPv4
	api.Set(kubeService("a", "10.96.0.1"), sliceOf("a", "a-1", v4, "10.1.0.1", "10.1.0.2"), sliceOf("a", "a-2", v4, "10.1.0.3"))
	m := newModelled()
	follow(t, kubeOf(t, api, KubeConfig{}), m.deliver)
	before := len(m.awaitSeen(t, "a=10.1.0.1:8080,10.1.0.2:8080,10.1.0.3:8080"))
	for range 20 {
		// The controller creates before it takes away.
		api.Set(sliceOf("a", "a-2", v4, "10.1.0.3", "10.1.0.2"))
		api.Set(sliceOf("a", "a-1", v4, "10.1.0.1"))
		api.Set(sliceOf("a", "a-1", v4, "10.1.0.1", "10.1.0.2"))
		api.Set(sliceOf("a", "a-2", v4, "10.1.0.3"))
	}
	api.Set(sliceOf("a", "a-2", v4, "10.1.0.4"))
	for _, form := range m.awaitSeen(t, "a=10.1.0.1:8080,10.1.0.2:8080,10.1.0.4:8080")[before:] {
		if !strings.Contains(form, "10.1.0.2:8080") {
			t.Errorf("the endpoint vanished: %s", form)
		}
	}
}

// TestModelIgnores leaves out slices without a Service's name, those of names
// rather than addresses, and what is labelled for others: of manifests, too,
// which no server selects from.
//
// Behaviour: 69, 99, 102, 103.
func TestModelIgnores(t *testing.T) {
	api := apitest.New(t)
	v4 := discoveryv1.AddressTypeIPv4
	foreign := kubeService("foreign", "10.96.0.2")
	foreign.Labels = map[string]string{proxyNameLabel: "other"}
	headless := sliceOf("a", "a-4", v4, "10.1.0.4")
	headless.Labels[corev1.IsHeadlessService] = ""
	objects := []apitest.Object{kubeService("a", "10.96.0.1"), foreign, sliceOf("a", "a-1", v4, "10.1.0.1"),
		sliceOf("", "a-2", v4, "10.1.0.2"), sliceOf("a", "a-3", discoveryv1.AddressTypeFQDN, "a.example.com"), headless}
	api.Set(objects...)
	m := newModelled()
	follow(t, kubeOf(t, api, KubeConfig{}), m.deliver)
	m.awaitSeen(t, "a=10.1.0.1:8080")

	events := []Event{}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Service:
			events = append(events, ServiceSet{o})
		case *discoveryv1.EndpointSlice:
			events = append(events, SliceSet{o})
		}
	}
	direct := newModelled()
	direct.deliver(events)
	direct.awaitSeen(t, "a=10.1.0.1:8080")
}
