package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

func sticky(seconds int32) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
}

// stuck waits until many connections all go to one pod, and returns its name.
func (e *env) stuck(t *testing.T, from asker, network string, to netip.AddrPort) string {
	t.Helper()
	var pod string
	within(t, e.ctx, settled, fmt.Sprintf("%s %s from %s keeps its pod", network, to, from.Name()), func() error {
		var err error
		pod, err = e.one(from, network, to)
		return err
	})
	return pod
}

// one asks twenty times and returns the one pod that answered. With four pods, chance does that once in
// 10¹¹ times.
func (e *env) one(from asker, network string, to netip.AddrPort) (string, error) {
	pod := ""
	for range 20 {
		a, err := from.Ask(e.ctx, network, to, answerTime/2)
		if err != nil {
			return "", err
		}
		if pod != "" && a.Pod != pod {
			return "", fmt.Errorf("%s and %s answered", pod, a.Pod)
		}
		pod = a.Pod
	}
	return pod, nil
}

// affinityKept: a client stays with its pod, by all addresses of a Service port, while that pod is an
// endpoint, and over restarts of weft.
//
// Behaviour: 77, 78, 80, 81, 84.
func affinityKept(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) {
		sticky(10800)(s)
		s.Spec.Type = corev1.ServiceTypeNodePort
	})
	s.endpoints(t, "a", e.web...)
	before := map[string]string{}
	for _, c := range e.clients {
		for _, v6 := range []bool{false, true} {
			for _, network := range []string{"tcp", "udp"} {
				to := s.vip(v6, 80)
				before[c.Name()+network+to.String()] = e.stuck(t, c, network, to)
			}
		}
	}
	// The NodePort of the client's own node leads to the same pod.
	for i, c := range e.clients {
		want := before[c.Name()+"tcp"+s.vip(false, 80).String()]
		if got, err := e.one(c, "tcp", e.nodePortOf(i, s, "http")); err != nil || got != want {
			t.Errorf("%s: NodePort leads to %q, %v; ClusterIP to %s", c.Name(), got, err, want)
		}
	}
	outside := e.stuck(t, e.lab.Outside, "tcp", e.nodePortOf(1, s, "http"))
	e.keeps(t, s, before)

	for i, d := range e.daemons {
		end := d.kill
		if i == 0 {
			end = d.stop
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := d.start(); err != nil {
			t.Fatal(err)
		}
		witness := e.webService(t, fmt.Sprintf("witness-%d", i), nil)
		witness.endpoints(t, "a", e.web[0])
		e.spread(t, e.clients[i], "tcp", witness.vip(false, 80), e.web[0])
	}
	e.keeps(t, s, before)
	if got, err := e.one(e.lab.Outside, "tcp", e.nodePortOf(1, s, "http")); err != nil || got != outside {
		t.Errorf("outside: NodePort leads to %q, %v after weft's restart; before to %s", got, err, outside)
	}

	// One pod goes: its clients choose again and stay there; other clients keep their pods.
	gone := before[e.clients[0].Name()+"tcp"+s.vip(false, 80).String()]
	s.endpoints(t, "a", without(e.web, gone)...)
	for _, c := range e.clients {
		for _, v6 := range []bool{false, true} {
			to := s.vip(v6, 80)
			was := before[c.Name()+"tcp"+to.String()]
			within(t, e.ctx, settled, gone+" is gone for "+c.Name(), func() error {
				now, err := e.one(c, "tcp", to)
				switch {
				case err != nil:
					return err
				case now == gone:
					return errors.New(gone + " answered")
				case was != gone && now != was:
					t.Errorf("%s %s: moved from %s to %s though only %s went", c.Name(), to, was, now, gone)
				}
				return nil
			})
		}
	}
}

// keeps compares the clients' pods with before.
func (e *env) keeps(t *testing.T, s *service, before map[string]string) {
	t.Helper()
	for _, c := range e.clients {
		for _, v6 := range []bool{false, true} {
			for _, network := range []string{"tcp", "udp"} {
				to := s.vip(v6, 80)
				want := before[c.Name()+network+to.String()]
				if got, err := e.one(c, network, to); err != nil || got != want {
					t.Errorf("%s %s from %s: %q, %v, want %s as before", network, to, c.Name(), got, err, want)
				}
			}
		}
	}
}

// affinityEnds: a client that is silent for the timeout chooses again, and an active one does not;
// affinity is turned off and on without a lost connection.
//
// Behaviour: 77, 82, 83.
func affinityEnds(t *testing.T, e *env) {
	s := e.webService(t, "web", sticky(1))
	s.endpoints(t, "a", e.web...)
	c, to := e.clients[0], s.vip(false, 80)
	e.stuck(t, c, "tcp", to)
	// With four pods, chance is one pod ten times once in 10⁵ times.
	var seen []string
	pause := time.NewTicker(1500 * time.Millisecond)
	defer pause.Stop()
	for range 10 {
		<-pause.C
		a, err := c.Ask(e.ctx, "tcp", to, answerTime)
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, a.Pod); seen[0] != a.Pod {
			break
		}
	}
	if len(slices.Compact(seen)) == 1 {
		t.Errorf("%s answered after each of %d pauses longer than the timeout", seen[0], len(seen))
	}
	pod := e.stuck(t, c, "tcp", to)
	often := time.NewTicker(250 * time.Millisecond)
	defer often.Stop()
	for range 10 {
		<-often.C
		a, err := c.Ask(e.ctx, "tcp", to, answerTime)
		if err != nil {
			t.Fatal(err)
		}
		if a.Pod != pod {
			t.Errorf("the client moved from %s to %s though it was never silent for a second", pod, a.Pod)
		}
	}
	load := e.startLoad(t, e.clients[1].Namespace, "tcp", to, 50)
	s.update(t, func(s *corev1.Service) {
		s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
	})
	e.spread(t, c, "tcp", to, e.web...)
	s.update(t, sticky(3600))
	e.stuck(t, c, "tcp", to)
	e.report(t, []*namedLoad{load})
}

// affinityLocal: with a policy Local a client keeps its pod among the node's.
//
// Behaviour: 49, 77, 84.
func affinityLocal(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) {
		sticky(10800)(s)
		s.Spec.Type = corev1.ServiceTypeNodePort
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	s.endpoints(t, "a", e.uneven()...)
	to := e.nodePortOf(0, s, "http")
	local := map[string]bool{}
	for _, p := range e.onNode(0) {
		local[p.Name()] = true
	}
	first := e.stuck(t, e.lab.Outside, "tcp", to)
	if !local[first] {
		t.Fatalf("%s answered, want one of %s", first, names(e.onNode(0)))
	}
	s.endpoints(t, "a", without(e.uneven(), first)...)
	rest := without(e.onNode(0), first)
	e.spread(t, e.lab.Outside, "tcp", to, rest...)
	s.endpoints(t, "a", e.uneven()...)
	// The first pod is back, but the client now belongs to the other.
	within(t, e.ctx, settled, first+" is back for pods", func() error {
		return e.reached(e.clients[2], s.vip(false, 90), first)
	})
	if got, err := e.one(e.lab.Outside, "tcp", to); err != nil || got != rest[0].Name() {
		t.Errorf("outside: %q, %v, want %s", got, err, rest[0].Name())
	}
}

// reached asks from new pods, without affinity, until one gets the pod.
func (e *env) reached(from *lab.Pod, to netip.AddrPort, pod string) (err error) {
	d, err := from.Node().NewPod("newcomer")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Remove()) }()
	a, err := d.Ask(e.ctx, "tcp", to, answerTime)
	if err == nil && a.Pod != pod {
		err = fmt.Errorf("%s answered", a.Pod)
	}
	return err
}
