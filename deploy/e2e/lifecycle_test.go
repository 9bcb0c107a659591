package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// update changes the newest version of the Service, as kubectl edit does, and s becomes the API
// server's result.
func (s *service) update(t *testing.T, change func(*corev1.Service)) {
	t.Helper()
	api := s.e.cluster.Client().CoreV1().Services(s.Namespace)
	now, err := api.Get(s.e.ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("read service %s: %v", s.Name, err)
	}
	change(now)
	if s.Service, err = api.Update(s.e.ctx, now, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("update service %s: %v", s.Name, err)
	}
}

// ingress writes load balancer addresses, as a cloud's controller does.
func (s *service) ingress(t *testing.T, all ...corev1.LoadBalancerIngress) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": all}}})
	if err == nil {
		s.Service, err = s.e.cluster.Client().CoreV1().Services(s.Namespace).
			Patch(s.e.ctx, s.Name, types.MergePatchType, b, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		t.Fatalf("write load balancer of service %s: %v", s.Name, err)
	}
}

// lifecycleReuse: a ClusterIP that another Service takes at once leads only to its new owner's pods,
// also for continuing clients.
//
// Behaviour: 12, 112.
func lifecycleReuse(t *testing.T, e *env) {
	first := e.webService(t, "first", nil)
	first.endpoints(t, "a", e.web[:2]...)
	flow := e.flow(t, e.clients[0], first.vip(false, 80), 40200)
	e.spread(t, e.clients[0], "tcp", first.vip(false, 80), e.web[:2]...)
	e.spread(t, e.clients[0], "tcp", first.vip(true, 80), e.web[:2]...)
	if _, err := e.askUDP(flow.Conversation); err != nil {
		t.Fatal(err)
	}
	tcp, err := e.clients[0].Open(e.ctx, "tcp", first.vip(false, 80), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	first.delete(t)
	second := e.webService(t, "second", func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = first.Spec.ClusterIP, first.Spec.ClusterIPs
		s.Spec.IPFamilies = first.Spec.IPFamilies
	})
	second.endpoints(t, "a", e.web[2])
	for _, v6 := range []bool{false, true} {
		if first.vip(v6, 80) != second.vip(v6, 80) {
			t.Fatalf("second has %s, want %s of the first", second.vip(v6, 80), first.vip(v6, 80))
		}
		for _, c := range e.clients {
			e.spread(t, c, "tcp", second.vip(v6, 80), e.web[2])
			e.spread(t, c, "udp", second.vip(v6, 80), e.web[2])
		}
	}
	flow.reaches(t, e, e.web[2])
	if _, err := tcp.Ask(e.ctx, "still there"); err != nil {
		t.Errorf("connection made before: %v", err)
	}
	if found := e.traces(t, first.Namespace+"/"+first.Name+":"); len(found) > 0 {
		t.Errorf("left of the first: %s", found[0])
	}
}

// lifecycleMoved: a Service created again under its name has another address; only the new address
// answers.
//
// Behaviour: 13.
func lifecycleMoved(t *testing.T, e *env) {
	old := e.webService(t, "web", nil)
	old.endpoints(t, "a", e.web...)
	for _, c := range e.clients {
		e.spread(t, c, "tcp", old.vip(false, 80), e.web...)
	}
	old.delete(t)
	// The old addresses stay taken, so that the new ones differ.
	holder := e.webService(t, "holder", func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.IPFamilies = old.Spec.ClusterIP, old.Spec.ClusterIPs, old.Spec.IPFamilies
	})
	moved := e.webService(t, "web", nil)
	for _, v6 := range []bool{false, true} {
		for _, c := range e.clients {
			e.spread(t, c, "tcp", moved.vip(v6, 80), e.web...)
			e.refused(t, c, "tcp", old.vip(v6, 80))
		}
	}
	holder.delete(t)
	e.silent(t, e.clients[0], "tcp", old.vip(false, 80))
	e.noAddress(t, old.vip(false, 80).Addr())
}

func (e *env) noAddress(t *testing.T, a netip.Addr) {
	t.Helper()
	within(t, e.ctx, settled, "no trace of "+a.String(), func() error {
		if found := e.traces(t, a.String()+" "); len(found) > 0 {
			return fmt.Errorf("left: %s", found[0])
		}
		return nil
	})
}

// flow is a UDP client with a constant port, one flow to the kernel.
type flow struct {
	*lab.Conversation
	what string
}

func (e *env) flow(t *testing.T, from asker, to netip.AddrPort, port uint16) flow {
	t.Helper()
	conn, err := from.Open(e.ctx, "udp", to, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return flow{conn, fmt.Sprintf("the flow from %s:%d to %s", from.Name(), port, to)}
}

func (f flow) reaches(t *testing.T, e *env, p *lab.Pod) {
	t.Helper()
	within(t, e.ctx, settled, f.what+" reaches "+p.Name(), func() error {
		a, err := e.askUDP(f.Conversation)
		if err == nil && a.Pod != p.Name() {
			err = fmt.Errorf("%s answered", a.Pod)
		}
		return err
	})
}
