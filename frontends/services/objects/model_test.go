package objects

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

var must = publishtest.Must

// modelled is a user of a source that keeps a model, refreshed after every batch.
type modelled struct {
	mu     sync.Mutex
	model  *model.Model
	synced bool
}

func (m *modelled) deliver(events []source.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		e.Apply()
	}
	m.model.Refresh()
}

func (m *modelled) setSynced() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced = true
}

// awaitServices waits until everything is known and the Services are these.
func (m *modelled) awaitServices(t *testing.T, want ...string) {
	t.Helper()
	publishtest.Await(t, fmt.Sprintf("Services %q", want), func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		var got []string
		for _, s := range m.model.Snapshot().Services {
			got = append(got, s.Name.Name)
		}
		return m.synced && slices.Equal(got, want)
	})
}

// follow has a model of node n1 follow an API server until the test ends.
func follow(t *testing.T, api *apitest.Server) *modelled {
	t.Helper()
	k, err := source.NewKube(source.KubeConfig{Server: api.URL(), QPS: -1})
	must(t, err)
	m := &modelled{model: model.New(model.Config{NodeName: "n1"})}
	must(t, k.Subscribe(source.Subscription{User: "test", Kinds: Kinds("n1", m.model), Deliver: m.deliver, Synced: m.setSynced}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return m
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
