package differential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// check is objects and probes, the same for both proxies.
type check struct {
	// name is a DNS label, a prefix of the objects' names.
	name string
	// family limits the probes to IPv4 or IPv6; 0 means both.
	family int
	// services are written first; targets refer to the first.
	services []service
	probes   []probe
	then     []step
}

// step is a change of the objects, and the probes after it.
type step struct {
	do     func(ctx context.Context, r *run) error
	probes []probe
}

// The checks of a group run at once under one configuration.
type group struct {
	name   string
	flags  []string
	checks func() []check
}

type run struct {
	world *world
	check check
	slug  string

	mu      sync.Mutex
	objects map[string]*corev1.Service
	ports   map[string]uint16
	flows   map[string]*lab.Conversation
	// blocks numbers the services of the whole group; see vip.
	blocks *blocks
}

func newRun(w *world, c check, slug string, shared *blocks) *run {
	return &run{
		world: w, check: c, slug: slug, blocks: shared,
		objects: map[string]*corev1.Service{}, ports: map[string]uint16{}, flows: map[string]*lab.Conversation{},
	}
}

// run starts both proxies.
func (w *world) run(t *testing.T, ctx context.Context, c config) {
	t.Helper()
	for _, s := range w.sides() {
		if err := s.run(ctx, w.kubeconfig, c); err != nil {
			t.Fatal(err)
		}
	}
}

type blocks struct {
	mu     sync.Mutex
	number map[string]int
}

func (r *run) block(svc string) int {
	r.blocks.mu.Lock()
	defer r.blocks.mu.Unlock()
	name := r.fullName(svc)
	n, ok := r.blocks.number[name]
	if !ok {
		n = len(r.blocks.number)
		r.blocks.number[name] = n
	}
	return n
}

func (r *run) keep(svc string, o *corev1.Service) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A lost address may still be asked for.
	if old := r.objects[svc]; old != nil && len(o.Spec.ClusterIPs) == 0 {
		o.Spec.ClusterIPs = old.Spec.ClusterIPs
	}
	r.objects[svc] = o
}

func (r *run) object(svc string) *corev1.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[svc]
}

func (r *run) remember(svc, port, proto string, number uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ports[svc+"/"+port+"/"+proto] = number
}

func (r *run) remembered(svc, port, proto string) uint16 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ports[svc+"/"+port+"/"+proto]
}

// service returns a copy, to be changed and put again.
func (r *run) service(name string) service {
	for _, s := range r.check.services {
		if s.name == name {
			return s
		}
	}
	panic("no service " + name)
}

type result struct {
	probe probe
	step  int
	// observed and expected
	peer, weft         string
	wantPeer, wantWeft string
	deliberate         *deliberate
}

// play runs each step of all checks at once.
func (w *world) play(t *testing.T, g group) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	w.run(t, ctx, config{name: g.name, flags: g.flags})
	defer w.clear(t)
	checks, shared := g.checks(), &blocks{number: map[string]int{}}
	runs, results, last := make([]*run, len(checks)), make([][]result, len(checks)), 0
	for i, c := range checks {
		if problems := validation.IsDNS1035Label(c.name); len(problems) > 0 || len(c.name) > 40 {
			t.Fatalf("check %q: %v", c.name, problems)
		}
		runs[i] = newRun(w, c, c.name, shared)
		last = max(last, len(c.then))
	}
	for n := range last + 1 {
		for _, r := range runs {
			if err := r.step(ctx, n); err != nil {
				t.Fatalf("%s, step %d: %v", r.check.name, n, err)
			}
		}
		if err := w.fence(ctx, fmt.Sprintf("%s-%d", g.name, n), shared); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		w.ask(ctx, g, runs, n, results)
	}
	for i, r := range runs {
		t.Run(r.check.name, func(t *testing.T) { report(t, results[i]) })
		for _, c := range r.flows {
			c.Close()
		}
	}
}

func (r *run) step(ctx context.Context, n int) error {
	switch {
	case n == 0:
		for _, s := range r.check.services {
			if err := r.put(ctx, s); err != nil {
				return err
			}
		}
	case n <= len(r.check.then):
		return r.check.then[n-1].do(ctx, r)
	}
	return nil
}

// one for each family
func (r *run) probesOf(n int) []probe {
	var list, all []probe
	switch {
	case n == 0:
		list = r.check.probes
	case n <= len(r.check.then):
		list = r.check.then[n-1].probes
	}
	for _, p := range list {
		if p.family == 0 {
			p.family = r.check.family
		}
		if p.family != 0 {
			all = append(all, p)
			continue
		}
		for _, p.family = range []int{4, 6} {
			all = append(all, p)
		}
	}
	return all
}

// fence waits until both sides have applied all earlier writes.
func (w *world) fence(ctx context.Context, name string, shared *blocks) error {
	r := newRun(w, check{services: []service{{name: "fence"}}}, "fence-"+name, shared)
	// Without UDP: kube-proxy looks for stale flows only when the endpoints of a UDP port change, which
	// the fence must not cause.
	s := service{
		name: "fence", endpoints: "web-1",
		change: func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] },
		slice:  func(s *discoveryv1.EndpointSlice) { s.Ports = s.Ports[:1] },
	}
	if err := r.put(ctx, s); err != nil {
		return err
	}
	for _, s := range w.sides() {
		for _, family := range []int{4, 6} {
			to, err := r.target(s, probe{proto: "tcp", family: family}, "cluster:80")
			if err != nil {
				return err
			}
			if err := s.await(ctx, to); err != nil {
				return fmt.Errorf("%s does not put objects into force: %w; its last lines:\n%s", s.name, err, s.proxy.Tail(10))
			}
		}
	}
	return nil
}

// await waits until a pod reaches an address, or the proxy ends.
func (s *side) await(ctx context.Context, to netip.AddrPort) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.proxy.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return lab.Within(ctx, 3*time.Minute, func() error {
		_, err := s.actors["pod"].ask(ctx, "tcp", to, 300*time.Millisecond)
		return err
	})
}

const parallel = 24

func (w *world) ask(ctx context.Context, g group, runs []*run, n int, results [][]result) {
	slots := make(chan struct{}, parallel)
	var wait sync.WaitGroup
	for i, r := range runs {
		probes := r.probesOf(n)
		first := len(results[i])
		results[i] = append(results[i], make([]result, len(probes))...)
		for j, p := range probes {
			out := &results[i][first+j]
			wait.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				*out = r.compare(ctx, g.name, n, p)
			})
		}
	}
	wait.Wait()
}

// compare retries unexpected results, because effects such as the removal of flows may follow a commit.
func (r *run) compare(ctx context.Context, group string, n int, p probe) result {
	out := result{probe: p, step: n, wantPeer: p.want, wantWeft: p.want}
	if d := findDeliberate(group, r.check.name, n, p, r.world.minor); d != nil {
		out.deliberate = d
		out.wantPeer, out.wantWeft = cmp.Or(d.peer, p.want), cmp.Or(d.weft, p.want)
	}
	if p.want == whatever {
		_ = lab.Within(ctx, 2*time.Second, func() error {
			out.peer, out.weft = r.observe(ctx, r.world.peer, p), r.observe(ctx, r.world.weft, p)
			if out.peer != out.weft {
				return errors.New("not the same")
			}
			return nil
		})
		return out
	}
	var wait sync.WaitGroup
	for _, o := range []struct {
		side *side
		want string
		to   *string
	}{{r.world.peer, out.wantPeer, &out.peer}, {r.world.weft, out.wantWeft, &out.weft}} {
		wait.Go(func() {
			q := p
			q.want = o.want
			// A node answers that a host is unreachable at most once a second.
			_ = lab.Within(ctx, 5*time.Second, func() error {
				if *o.to = r.observe(ctx, o.side, q); *o.to != o.want {
					return errors.New(*o.to)
				}
				return nil
			})
		})
	}
	wait.Wait()
	return out
}

// report fails the test for every difference that is not deliberate.
func report(t *testing.T, results []result) {
	for _, r := range results {
		what := fmt.Sprintf("step %d: %s", r.step, r.probe)
		switch {
		case r.probe.want == whatever:
			if r.peer != r.weft {
				t.Errorf("%s: DIFFERENCE: kube-proxy: %s; weft: %s", what, r.peer, r.weft)
			}
		case r.peer != r.wantPeer:
			t.Errorf("%s: kube-proxy: %s; the check says: %s (weft: %s)", what, r.peer, r.wantPeer, r.weft)
		case r.weft != r.wantWeft:
			t.Errorf("%s: DIFFERENCE: kube-proxy: %s; weft: %s, want %s", what, r.peer, r.weft, r.wantWeft)
		case r.deliberate != nil:
			t.Logf("%s: deliberate, Behaviour %d: kube-proxy: %s; weft: %s: %s", what, r.deliberate.behaviour, r.peer, r.weft, r.deliberate.reason)
		}
	}
}

func (w *world) clear(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	defer cancel()
	services, err := w.client().CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	for _, s := range services.Items {
		if err := w.client().CoreV1().Services(namespace).Delete(ctx, s.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	if err := w.client().DiscoveryV1().EndpointSlices(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	for _, s := range w.sides() {
		if s.proxy == nil {
			continue
		}
		if err := s.proxy.Err(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// lines reads a table of probes: "FROM PROTO TO... [v4|v6] [sticky] [flow=NAME] = WANT".
func lines(text string) []probe {
	var all []probe
	for line := range strings.Lines(text) {
		left, want, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			if strings.TrimSpace(line) != "" {
				panic("probe without a want: " + line)
			}
			continue
		}
		words := strings.Fields(left)
		p := probe{from: words[0], proto: words[1], want: strings.TrimSpace(want)}
		for _, w := range words[2:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "v4":
				p.family = 4
			case "v6":
				p.family = 6
			case "sticky":
				p.sticky = true
			case "flow":
				p.flow = value
			default:
				p.to = strings.TrimSpace(p.to + " " + w)
			}
		}
		all = append(all, p)
	}
	return all
}
