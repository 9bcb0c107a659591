package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// serviceEndpointRemoved: an endpoint that leaves the slice gets no packets, though it still runs; a
// connection to another endpoint stays up.
//
// Behaviour: 110.
func serviceEndpointRemoved(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web...)
	c, to := e.clients[0], s.vip(false, 80)
	e.spread(t, c, "tcp", to, e.web...)

	conn, err := c.Open(e.ctx, "tcp", to, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var stay, leave []*lab.Pod
	for _, p := range e.web {
		if p.Name() != conn.First.Pod && len(leave) < 2 {
			leave = append(leave, p)
		} else {
			stay = append(stay, p)
		}
	}
	start := time.Now()
	s.endpoints(t, "a", stay...)
	e.spread(t, c, "tcp", to, stay...)
	e.spread(t, c, "udp", to, stay...)
	t.Logf("%s left; traffic went to %s alone within %s", names(leave), names(stay), time.Since(start).Round(time.Millisecond))
	if a, err := conn.Ask(e.ctx, "still there"); err != nil || a.Pod != conn.First.Pod {
		t.Errorf("connection to %s: answer of %q, %v", conn.First.Pod, a.Pod, err)
	}
	s.endpoints(t, "a", e.web...)
	e.spread(t, c, "tcp", to, e.web...)
	if a, err := conn.Ask(e.ctx, "and now"); err != nil || a.Pod != conn.First.Pod {
		t.Errorf("connection to %s: answer of %q, %v", conn.First.Pod, a.Pod, err)
	}
}

// serviceUDPMoves: a client with a constant source port is one flow to the kernel, which would stay
// with its endpoint.
//
// Behaviour: 106.
func serviceUDPMoves(t *testing.T, e *env) {
	s := e.webService(t, "web", nil)
	s.endpoints(t, "a", e.web...)
	for i, v6 := range []bool{false, true} {
		to := s.vip(v6, 80)
		e.spread(t, e.clients[0], "udp", to, e.web...)
		conn, err := e.clients[0].Open(e.ctx, "udp", to, uint16(40000+i))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		rest := e.web
		for len(rest) > 1 {
			first, err := e.askUDP(conn)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := e.askUDP(conn); err != nil || again.Pod != first.Pod {
				t.Fatalf("one flow went to %s and then to %q, %v", first.Pod, again.Pod, err)
			}
			rest = without(rest, first.Pod)
			s.endpoints(t, "a", rest...)
			took := within(t, e.ctx, settled, "the flow leaves "+first.Pod, func() error {
				a, err := e.askUDP(conn)
				if err == nil && a.Pod == first.Pod {
					err = fmt.Errorf("%s answered", a.Pod)
				}
				return err
			})
			t.Logf("%s: the flow left %s in %s", to, first.Pod, took.Round(time.Millisecond))
		}
		s.endpoints(t, "a", e.web...)
	}
}

// A lost packet costs little time.
func (e *env) askUDP(c *lab.Conversation) (lab.Answer, error) {
	ctx, cancel := context.WithTimeout(e.ctx, 100*time.Millisecond)
	defer cancel()
	return c.Ask(ctx, strconv.FormatInt(time.Now().UnixNano(), 36))
}

func without(pods []*lab.Pod, name string) []*lab.Pod {
	var rest []*lab.Pod
	for _, p := range pods {
		if p.Name() != name {
			rest = append(rest, p)
		}
	}
	return rest
}

// serviceDeleted: a deleted Service leaves no rules or UDP flows; TCP connections stay.
//
// Behaviour: 12, 110, 112.
func serviceDeleted(t *testing.T, e *env) {
	s := e.webService(t, "gone", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
	s.endpoints(t, "a", e.web...)
	c, to := e.clients[0], s.vip(false, 80)
	e.spread(t, c, "tcp", to, e.web...)
	tcp, err := c.Open(e.ctx, "tcp", to, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := c.Open(e.ctx, "udp", to, 40011)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	if _, err := e.askUDP(udp); err != nil {
		t.Fatal(err)
	}
	s.delete(t)
	e.silent(t, c, "tcp", to)
	e.silent(t, c, "udp", to)
	e.silent(t, e.lab.Outside, "tcp", e.nodePortOf(0, s, "http"))
	within(t, e.ctx, settled, "the UDP flow ends", func() error {
		if a, err := e.askUDP(udp); err == nil {
			return fmt.Errorf("%s answered", a.Pod)
		}
		return nil
	})
	if _, err := tcp.Ask(e.ctx, "still there"); err != nil {
		t.Errorf("connection made before the deletion: %v", err)
	}
	e.noTrace(t, s)
}

func (e *env) relabel(t *testing.T, name, label, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, label, value)
	if _, err := e.cluster.Client().CoreV1().Services(e.namespace).Patch(e.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatalf("label service %s: %v", name, err)
	}
}

// traceless creates a Service that weft must ignore, and then a witness that works.
func (e *env) traceless(t *testing.T, change func(*corev1.Service)) {
	t.Helper()
	s := e.webService(t, "not-ours", change)
	s.endpoints(t, "a", e.web...)
	witness := e.webService(t, "witness", nil)
	witness.endpoints(t, "a", e.web[0])
	for _, c := range e.clients {
		e.spread(t, c, "tcp", witness.vip(false, 80), e.web[0])
		e.spread(t, c, "tcp", witness.vip(true, 80), e.web[0])
	}
	if to := s.vip(false, 80); to.IsValid() {
		e.silent(t, e.clients[0], "tcp", to)
	}
	e.noTrace(t, s)
}

// noTrace looks for the Service's name, addresses and node ports in the rulesets.
func (e *env) noTrace(t *testing.T, s *service) {
	t.Helper()
	words := []string{s.Namespace + "/" + s.Name + ":"}
	for _, ip := range s.Spec.ClusterIPs {
		if ip != headlessAddress {
			words = append(words, ip+" ")
		}
	}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			words = append(words, fmt.Sprintf(" %d ", p.NodePort))
		}
	}
	within(t, e.ctx, settled, "no trace of "+s.Name, func() error {
		if found := e.traces(t, words...); len(found) > 0 {
			return errors.New(found[0])
		}
		return nil
	})
}
