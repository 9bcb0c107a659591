package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// deployment acts as a Deployment, its ReplicaSets and the kubelets.
type deployment struct {
	e        *env
	app      string
	replicas int
	// a rolling update's bounds: a quarter by default
	surge, unavailable int
	// startup is from a pod's creation to its readiness. Pods serve until grace after their deletion.
	startup, grace time.Duration

	generation int
	pods       []*member
	// namespaces of all pods: serving, gone, and at the end not yet started
	made []*lab.Pod
	next int
}

type member struct {
	*replica
	generation int
	ready      bool
	created    time.Time
	deleted    time.Time // zero until deleted
}

// roll replaces all pods by the next generation, and returns when the last old pod is gone.
func (d *deployment) roll(ctx context.Context) error {
	d.generation++
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := d.step(ctx, time.Now())
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("roll %s out: %w: %s", d.app, ctx.Err(), d)
		case <-tick.C:
		}
	}
}

// step does the due actions, and reports whether the roll is complete.
func (d *deployment) step(ctx context.Context, now time.Time) (bool, error) {
	if err := d.kubelets(ctx, now); err != nil {
		return false, err
	}
	old, young, available, unavailable := 0, 0, 0, 0
	for _, m := range d.pods {
		switch {
		case !m.deleted.IsZero():
			continue
		case m.generation == d.generation:
			young++
			if !m.ready {
				unavailable++
			}
		default:
			old++
		}
		if m.ready {
			available++
		}
	}
	// The Deployment controller's arithmetic.
	for range min(d.replicas-young, d.replicas+d.surge-old-young) {
		if err := d.create(ctx, now); err != nil {
			return false, err
		}
		young, unavailable = young+1, unavailable+1
	}
	spare := old + young - (d.replicas - d.unavailable) - unavailable
	for _, m := range d.pods {
		if spare > 0 && m.generation != d.generation && m.deleted.IsZero() {
			if err := m.terminate(ctx, d.grace); err != nil {
				return false, err
			}
			m.deleted = now
			spare--
		}
	}
	return len(d.pods) == d.replicas && available == d.replicas && old == 0, nil
}

// kubelets report started pods ready, and remove pods after their grace period.
func (d *deployment) kubelets(ctx context.Context, now time.Time) error {
	var left []*member
	for _, m := range d.pods {
		if !m.ready && now.Sub(m.created) >= d.startup {
			if err := m.report(ctx, true); err != nil {
				return err
			}
			m.ready = true
		}
		if m.deleted.IsZero() || now.Sub(m.deleted) < d.grace {
			left = append(left, m)
			continue
		}
		m.Quit()
		if err := m.forget(ctx); err != nil {
			return err
		}
	}
	d.pods = left
	return nil
}

// prepare makes namespaces for n more pods, on the nodes in turn. This briefly locks the machine's
// whole network, so it must not happen during a roll.
func (d *deployment) prepare(n int) error {
	for range n {
		nodes := d.e.lab.Nodes
		p, err := nodes[len(d.made)%len(nodes)].NewPod(fmt.Sprintf("%s-%d", d.app, len(d.made)))
		if err != nil {
			return err
		}
		d.made = append(d.made, p)
	}
	return nil
}

// create starts one pod of the current generation, in the next namespace.
func (d *deployment) create(ctx context.Context, now time.Time) error {
	p := d.made[d.next]
	d.next++
	if err := p.Serve(webPorts...); err != nil {
		return err
	}
	r, err := d.e.schedule(ctx, d.app, p, webContainerPorts())
	if err != nil {
		return err
	}
	if err := r.report(ctx, false); err != nil {
		return err
	}
	d.pods = append(d.pods, &member{replica: r, generation: d.generation, created: now})
	return nil
}

func (d *deployment) remove() error {
	for _, p := range d.made {
		if err := p.Remove(); err != nil {
			return err
		}
	}
	return nil
}

func (d *deployment) running() []*lab.Pod {
	var all []*lab.Pod
	for _, m := range d.pods {
		all = append(all, m.Pod)
	}
	return all
}

func (d *deployment) String() string {
	counts := map[string]int{}
	for _, m := range d.pods {
		counts[fmt.Sprintf("generation %d, ready %v, terminating %v", m.generation, m.ready, !m.deleted.IsZero())]++
	}
	return fmt.Sprint(counts)
}

// per second and client
const requestRate = 500

// rolloutUnderLoad: all twenty pods of a Service are replaced without a failure for clients inside and
// outside that make new connections.
//
// Behaviour: 1, 4, 25, 63.
func rolloutUnderLoad(t *testing.T, e *env) {
	s := e.webService(t, "web", func(s *corev1.Service) {
		selecting("web")(s)
		s.Spec.Type = corev1.ServiceTypeNodePort
	})
	d := &deployment{e: e, app: "web", replicas: 20, surge: 5, unavailable: 5, startup: 500 * time.Millisecond, grace: 5 * time.Second}
	defer func() {
		if err := d.remove(); err != nil {
			t.Error(err)
		}
	}()
	if err := d.prepare(2 * d.replicas); err != nil {
		t.Fatal(err)
	}
	if err := d.roll(e.ctx); err != nil {
		t.Fatal(err)
	}
	loads := e.rolloutLoads(t, s, d.running())
	reached := func(generation string, pods int) {
		within(t, e.ctx, settled, "the loads reach "+generation, func() error {
			for _, l := range loads {
				if n := l.Answered(); n < pods {
					return fmt.Errorf("%s: %d of %d pods answered", l.what, n, pods)
				}
			}
			return nil
		})
	}
	reached("the old generation", d.replicas)
	// The machine's own failures under such a load, without a Service.
	floor := e.startLoad(t, e.clients[1].Namespace, "tcp", netip.AddrPortFrom(e.web[0].Addresses.V4, webPorts[0]), requestRate)
	start := time.Now()
	err := d.roll(e.ctx)
	took := time.Since(start)
	// The effect of the last pod's end shows after it.
	tail := time.NewTimer(time.Second)
	defer tail.Stop()
	<-tail.C
	if err != nil {
		t.Error(err)
	} else {
		reached("both generations", 2*d.replicas)
	}
	e.report(t, append(loads, floor))
	e.spread(t, e.clients[1], "tcp", s.vip(false, 80), d.running()...)
	e.note(t, "20 of 20 pods replaced in %s (5 more and 5 fewer at a time, grace %s)", took.Round(100*time.Millisecond), d.grace)
}

type namedLoad struct {
	what string
	*load
}

// The load ends with the scenario at the latest.
func (e *env) startLoad(t *testing.T, from *lab.Namespace, network string, to netip.AddrPort, rate int) *namedLoad {
	l := startLoad(from, loadConfig{Network: network, To: to, Rate: rate})
	t.Cleanup(func() { l.Stop() })
	return &namedLoad{what: fmt.Sprintf("%s from %s to %s, %d/s", network, from.Name(), to, rate), load: l}
}

// rolloutLoads asks by both protocols from a pod and from outside.
func (e *env) rolloutLoads(t *testing.T, s *service, pods []*lab.Pod) []*namedLoad {
	t.Helper()
	inside, outside := s.vip(false, 80), []netip.AddrPort{e.nodePortOf(1, s, "http"), e.nodePortOf(1, s, "http-udp")}
	e.spread(t, e.clients[0], "tcp", inside, pods...)
	e.spread(t, e.clients[0], "udp", inside, pods...)
	e.spread(t, e.lab.Outside, "tcp", outside[0], pods...)
	e.spread(t, e.lab.Outside, "udp", outside[1], pods...)
	return []*namedLoad{
		e.startLoad(t, e.clients[0].Namespace, "tcp", inside, requestRate),
		e.startLoad(t, e.clients[0].Namespace, "udp", inside, requestRate),
		e.startLoad(t, e.lab.Outside.Namespace, "tcp", outside[0], requestRate),
		e.startLoad(t, e.lab.Outside.Namespace, "udp", outside[1], requestRate),
	}
}

// report ends the loads and fails the test for every failed request.
func (e *env) report(t *testing.T, loads []*namedLoad) {
	t.Helper()
	for _, l := range loads {
		r := l.Stop()
		e.note(t, "%s: %s", l.what, strings.TrimSpace(r.String()))
		if err := r.Err(); err != nil {
			t.Errorf("%s: %v", l.what, err)
		}
	}
}
