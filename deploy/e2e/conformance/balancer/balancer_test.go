package balancer

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// routes are the last arguments of Config.Route.
type routes struct {
	mu sync.Mutex
	to map[netip.Addr][]string
}

func (r *routes) set(addr netip.Addr, nodes []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to[addr] = nodes
	return nil
}

func (r *routes) get(addr string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.to[netip.MustParseAddr(addr)]
}

func node(name string, status corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
	}
}

func TestServiceLife(t *testing.T) {
	ctx := t.Context()
	client := fake.NewClientset(node("node-1", corev1.ConditionTrue), node("node-2", corev1.ConditionTrue), node("node-3", corev1.ConditionFalse))
	r := &routes{to: map[netip.Addr][]string{}}
	b, err := New(Config{Client: client, Ranges: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, Route: r.set})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() { done <- b.Run(running) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	services := client.CoreV1().Services("default")
	s, err := services.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s = until(t, func() (*corev1.Service, bool) {
		s, err := services.Get(ctx, s.Name, metav1.GetOptions{})
		return s, err == nil && len(s.Status.LoadBalancer.Ingress) == 1
	})
	if got := s.Status.LoadBalancer.Ingress[0].IP; got != "203.0.113.1" || !slices.Contains(s.Finalizers, finalizer) {
		t.Errorf("address %s and finalizers %v", got, s.Finalizers)
	}
	if got := r.get("203.0.113.1"); !slices.Equal(got, []string{"node-1", "node-2"}) {
		t.Errorf("routed to %v, want the Ready nodes", got)
	}

	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	if s, err = services.Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() ([]string, bool) {
		got := r.get("203.0.113.1")
		return got, slices.Equal(got, []string{"node-1"})
	})

	s.Spec.Type = corev1.ServiceTypeClusterIP
	if _, err = services.Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() (*corev1.Service, bool) {
		s, err := services.Get(ctx, s.Name, metav1.GetOptions{})
		return s, err == nil && len(s.Status.LoadBalancer.Ingress) == 0 && len(s.Finalizers) == 0
	})
	if got := r.get("203.0.113.1"); len(got) > 0 {
		t.Errorf("still routed to %v", got)
	}
}

// until retries f until it reports true.
func until[T any](t *testing.T, f func() (T, bool)) T {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		got, ok := f()
		if ok {
			return got
		}
		select {
		case <-deadline:
			t.Fatalf("still %+v", got)
		case <-tick.C:
		}
	}
}
