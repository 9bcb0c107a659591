package objects

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// modelled is a user of a source that keeps a model, refreshed after every batch.
type modelled struct {
	mu    sync.Mutex
	model *model.Model
	// seen are the forms that the Services had after each batch, without repeats.
	seen    []string
	synced  bool
	changed chan struct{}
}

func newModelled() *modelled {
	return &modelled{model: model.New(model.Config{NodeName: "n1"}), changed: make(chan struct{}, 1)}
}

// subscribe adds the model to a source.
func (m *modelled) subscribe(t *testing.T, s source.Source) {
	t.Helper()
	if err := s.Subscribe(source.Subscription{User: "test", Kinds: Kinds("n1", m.model), Deliver: m.deliver, Synced: m.setSynced}); err != nil {
		t.Fatal(err)
	}
}

func (m *modelled) deliver(events []source.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		e.Apply()
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
	m.wake()
}

func (m *modelled) setSynced() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced = true
	m.wake()
}

func (m *modelled) wake() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// await waits for a condition, which is called with the lock held.
func (m *modelled) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for {
		m.mu.Lock()
		done := ok()
		m.mu.Unlock()
		if done {
			return
		}
		select {
		case <-m.changed:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// awaitSeen waits until the Services have a form, and returns all until then.
func (m *modelled) awaitSeen(t *testing.T, want string) []string {
	t.Helper()
	var seen []string
	m.await(t, want, func() bool {
		seen = slices.Clone(m.seen)
		return len(seen) > 0 && seen[len(seen)-1] == want
	})
	return seen
}

// follow has a model follow an API server until the test ends.
func follow(t *testing.T, api *apitest.Server, m *modelled) {
	t.Helper()
	k, err := source.NewKube(source.KubeConfig{Server: api.URL(), QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	run(t, k, m)
}

// run runs a source with a model until the test ends.
func run(t *testing.T, s source.Source, m *modelled) {
	t.Helper()
	m.subscribe(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func kubeService(name, ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func kubeSlice(name string, addrs ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, a := range addrs {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
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
			follow(t, api, m)
			m.await(t, "the other kind", func() bool { return len(m.seen) > 0 })
			close(hold)
			m.awaitSeen(t, "a=10.1.0.1:8080")

			b, slice := kubeService("b", "10.96.0.2"), sliceOf("b", "b-1", discoveryv1.AddressTypeIPv4, "10.1.0.2")
			if late == "services" {
				api.Set(slice)
				m.await(t, "the slice", func() bool { return m.model.Stats().SliceEvents == 2 })
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
	follow(t, api, m)
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
	follow(t, api, m)
	m.awaitSeen(t, "a=10.1.0.1:8080")

	dir := t.TempDir()
	for i, o := range objects {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"})
		if _, ok := o.(*corev1.Service); ok {
			o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
		}
		b, err := yaml.Marshal(o)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".yaml")), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := source.NewManifests(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	m = newModelled()
	run(t, files, m)
	m.awaitSeen(t, "a=10.1.0.1:8080")
}
