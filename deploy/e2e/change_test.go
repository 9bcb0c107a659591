package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// serviceReplaced: a ClusterIP that another Service takes at once leads only to its new owner's pods,
// also for continuing clients.
//
// Behaviour: 12, 112.
func serviceReplaced(t *testing.T, e *env) {
	first := e.webService(t, "first", nil)
	first.endpoints(t, e.web[:2]...)
	e.spread(t, e.clients[0], "tcp", first.vip(true), e.web[:2]...)
	e.spread(t, e.clients[0], "tcp", first.vip(false), e.web[:2]...)
	flow := e.openUDP(t, e.clients[0], first.vip(false), 40200)
	tcp, err := e.clients[0].Open(e.ctx, "tcp", first.vip(false), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	first.delete(t)
	second := e.webService(t, "second", func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = first.Spec.ClusterIP, first.Spec.ClusterIPs
		s.Spec.IPFamilies = first.Spec.IPFamilies
	})
	second.endpoints(t, e.web[2])
	for _, v6 := range []bool{false, true} {
		for _, c := range e.clients {
			e.spread(t, c, "tcp", second.vip(v6), e.web[2])
			e.spread(t, c, "udp", second.vip(v6), e.web[2])
		}
	}
	within(t, e.ctx, settled, "the flow reaches "+e.web[2].Name(), func() error {
		a, err := e.askUDP(flow)
		if err == nil && a.Pod != e.web[2].Name() {
			err = fmt.Errorf("%s answered", a.Pod)
		}
		return err
	})
	if _, err := tcp.Ask(e.ctx, "still there"); err != nil {
		t.Errorf("connection made before: %v", err)
	}
	if found := e.traces(t, first.Namespace+"/"+first.Name+":"); len(found) > 0 {
		t.Errorf("left of the first: %s", found[0])
	}
}

// openUDP asks from a constant port, which makes one flow to the kernel.
func (e *env) openUDP(t *testing.T, from *lab.Pod, to netip.AddrPort, port uint16) *lab.Conversation {
	t.Helper()
	c, err := from.Open(e.ctx, "udp", to, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := e.askUDP(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// A lost packet costs little time.
func (e *env) askUDP(c *lab.Conversation) (lab.Answer, error) {
	ctx, cancel := context.WithTimeout(e.ctx, 100*time.Millisecond)
	defer cancel()
	return c.Ask(ctx, strconv.FormatInt(time.Now().UnixNano(), 36))
}

// noTrace looks for the Service's name and addresses in the rulesets.
func (e *env) noTrace(t *testing.T, s *service) {
	t.Helper()
	words := []string{s.Namespace + "/" + s.Name + ":"}
	for _, ip := range s.Spec.ClusterIPs {
		words = append(words, ip+" ")
	}
	within(t, e.ctx, settled, "no trace of "+s.Name, func() error {
		if found := e.traces(t, words...); len(found) > 0 {
			return errors.New(found[0])
		}
		return nil
	})
}
