package e2e

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// udpScaledToZero: a continuing client loses its flow with the last pod, though that pod would still
// answer, and then finds the next pod.
//
// Behaviour: 109, 111.
func udpScaledToZero(t *testing.T, e *env) {
	s := e.webService(t, "dns", func(s *corev1.Service) {
		selecting("dns")(s)
		s.Spec.Type = corev1.ServiceTypeNodePort
	})
	run := e.runApp(t, "dns", e.web[0])
	flows := e.flows(t, 40100, s)
	for _, f := range flows {
		f.reaches(t, e, e.web[0])
	}
	if err := run[0].forget(e.ctx); err != nil {
		t.Fatal(err)
	}
	for _, f := range flows {
		f.ends(t, e)
	}
	e.runApp(t, "dns", e.web[1])
	for _, f := range flows {
		f.reaches(t, e, e.web[1])
	}
}

// udpTerminating: a terminating pod keeps its flows and gets no new ones; after its end they move.
//
// Behaviour: 63, 106, 108.
func udpTerminating(t *testing.T, e *env) {
	s := e.webService(t, "dns", func(s *corev1.Service) {
		selecting("dns")(s)
		s.Spec.Type = corev1.ServiceTypeNodePort
	})
	run := e.runApp(t, "dns", e.web[0])
	flows := e.flows(t, 40600, s)
	for _, f := range flows {
		f.reaches(t, e, e.web[0])
	}
	e.runApp(t, "dns", e.web[1])
	e.spread(t, e.clients[0], "udp", s.vip(false, 80), e.web[:2]...)
	if err := run[0].terminate(e.ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, v6 := range []bool{false, true} {
		for _, from := range []asker{e.clients[0], e.lab.Nodes[1]} {
			e.spread(t, from, "udp", s.vip(v6, 80), e.web[1])
		}
	}
	for _, f := range flows {
		if a, err := e.askUDP(f.Conversation); err != nil || a.Pod != e.web[0].Name() {
			t.Errorf("%s: answer of %q, %v, want %s, which still serves", f.what, a.Pod, err, e.web[0].Name())
		}
	}
	if err := run[0].forget(e.ctx); err != nil {
		t.Fatal(err)
	}
	for _, f := range flows {
		f.reaches(t, e, e.web[1])
	}
}

// flow is a UDP client with a constant port, one flow to the kernel.
type flow struct {
	*lab.Conversation
	what string
}

// flows opens one to the Service's ClusterIPs from a pod and from a node, and to its NodePort from
// outside.
func (e *env) flows(t *testing.T, port uint16, s *service) []flow {
	t.Helper()
	var all []flow
	for _, v6 := range []bool{false, true} {
		all = append(all, e.flow(t, e.clients[0], s.vip(v6, 80), port), e.flow(t, e.lab.Nodes[1], s.vip(v6, 80), port))
		port++
	}
	for _, addr := range e.lab.Nodes[2].Addresses.All() {
		all = append(all, e.flow(t, e.lab.Outside, netip.AddrPortFrom(addr, s.nodePort("http-udp")), port))
		port++
	}
	return all
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

func (f flow) ends(t *testing.T, e *env) {
	t.Helper()
	within(t, e.ctx, settled, f.what+" ends", func() error {
		if a, err := e.askUDP(f.Conversation); err == nil {
			return fmt.Errorf("%s answered", a.Pod)
		}
		return nil
	})
}
