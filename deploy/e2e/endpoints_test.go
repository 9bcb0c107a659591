package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// endpointsReady: a Service with a selector has exactly the ready pods, on each pod's port of that
// name.
//
// Behaviour: 1, 5, 65.
func endpointsReady(t *testing.T, e *env) {
	s := e.webService(t, "web", selecting("web"))
	run := e.runApp(t, "web", e.web[:3]...)
	c := e.clients[0]
	for _, v6 := range []bool{false, true} {
		e.spread(t, c, "tcp", s.vip(v6, 80), e.web[:3]...)
		e.spread(t, c, "udp", s.vip(v6, 90), e.web[:3]...)
	}
	if err := run[0].report(e.ctx, false); err != nil {
		t.Fatal(err)
	}
	e.spread(t, c, "tcp", s.vip(false, 80), e.web[1:3]...)
	if err := run[0].report(e.ctx, true); err != nil {
		t.Fatal(err)
	}
	e.spread(t, c, "tcp", s.vip(false, 80), e.web[:3]...)

	// A pod with other numbers under the same names gets its own slice.
	odd, err := e.schedule(e.ctx, "web", e.web[3], map[string]int32{"http": 9090, "admin": 8080})
	if err == nil {
		err = odd.report(e.ctx, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.spread(t, c, "tcp", s.vip(false, 80), e.web...)
	within(t, e.ctx, settled, "each pod answers on its own port", func() error {
		a, err := c.Ask(e.ctx, "tcp", s.vip(false, 80), answerTime)
		if err == nil && (a.Pod == odd.Name()) != (a.Port == 9090) {
			t.Errorf("%s answered on %d", a.Pod, a.Port)
		}
		if err == nil && a.Pod != odd.Name() {
			err = fmt.Errorf("%s answered, not yet %s", a.Pod, odd.Name())
		}
		return err
	})
}

// endpointsNotReady: a Service may ask for pods that are not ready.
//
// Behaviour: 62.
func endpointsNotReady(t *testing.T, e *env) {
	s := e.webService(t, "early", func(s *corev1.Service) {
		selecting("early")(s)
		s.Spec.PublishNotReadyAddresses = true
	})
	for _, r := range e.runApp(t, "early", e.web[:2]...) {
		if err := r.report(e.ctx, false); err != nil {
			t.Fatal(err)
		}
	}
	e.spread(t, e.clients[0], "tcp", s.vip(false, 80), e.web[:2]...)
}

// endpointsTerminating: terminating pods get no traffic while others are ready; when all terminate, the
// serving ones answer; without serving pods no pod answers.
//
// Behaviour: 9, 63, 65.
func endpointsTerminating(t *testing.T, e *env) {
	s := e.webService(t, "web", selecting("web"))
	run := e.runApp(t, "web", e.web...)
	c, to := e.clients[0], s.vip(false, 80)
	e.spread(t, c, "tcp", to, e.web...)
	const grace = time.Hour
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(run[0].terminate(e.ctx, grace))
	e.spread(t, c, "tcp", to, e.web[1:]...)
	for _, r := range run[1:] {
		do(r.terminate(e.ctx, grace))
	}
	e.spread(t, c, "tcp", to, e.web...)
	e.spread(t, c, "udp", to, e.web...)
	do(run[0].report(e.ctx, false))
	e.spread(t, c, "tcp", to, e.web[1:]...)
	for _, r := range run[1:] {
		do(r.forget(e.ctx))
	}
	e.refused(t, c, "tcp", to)
	e.refused(t, c, "udp", to)
}

// endpointsTerminatingLocal: with the policy Local only the node's own pods count.
//
// Behaviour: 56, 57, 64.
func endpointsTerminatingLocal(t *testing.T, e *env) {
	local := corev1.ServiceInternalTrafficPolicyLocal
	s := e.webService(t, "web", func(s *corev1.Service) {
		selecting("web")(s)
		s.Spec.InternalTrafficPolicy = &local
	})
	run := e.runApp(t, "web", e.web[:2]...) // one on each of the first two nodes
	to := s.vip(false, 80)
	e.spread(t, e.clients[0], "tcp", to, e.web[0])
	e.spread(t, e.clients[1], "tcp", to, e.web[1])
	if err := run[1].terminate(e.ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	// Another node shows that the slice has changed.
	global := e.webService(t, "witness", selecting("web"))
	e.spread(t, e.clients[1], "tcp", global.vip(false, 80), e.web[0])
	e.spread(t, e.clients[1], "tcp", to, e.web[1])
	if err := run[1].forget(e.ctx); err != nil {
		t.Fatal(err)
	}
	e.dropped(t, question{e.clients[1], "tcp", to})
	e.spread(t, e.clients[0], "tcp", to, e.web[0])
}

// endpointsSibling: a port without pods refuses, while its sibling works.
//
// Behaviour: 8.
func endpointsSibling(t *testing.T, e *env) {
	s := e.webService(t, "half", selecting("half"))
	r, err := e.schedule(e.ctx, "half", e.web[0], map[string]int32{"http": 8080})
	if err == nil {
		err = r.report(e.ctx, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v6 := range []bool{false, true} {
		e.spread(t, e.clients[0], "tcp", s.vip(v6, 80), e.web[0])
		e.refused(t, e.clients[0], "tcp", s.vip(v6, 90))
		e.refused(t, e.clients[0], "udp", s.vip(v6, 90))
	}
}
