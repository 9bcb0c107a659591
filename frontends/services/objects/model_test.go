package objects

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
