package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// fakeAggregator keeps the elements that were published.
type fakeAggregator struct{ *publishtest.Aggregator }

func newFake(t *testing.T) *fakeAggregator {
	t.Helper()
	return &fakeAggregator{publishtest.New(t)}
}

// object names an element as violations do.
func object(family, set, key string) string {
	return publishtest.Element(family, render.Table, set, key)
}

// served returns the keys of the map services, sorted.
func (f *fakeAggregator) served() string {
	var out []string
	for k := range f.Elements() {
		if of := nametest.Parse(k); of.GetFamily() == "ip" && of.GetName() == "services" && strings.Contains(of.GetKey(), "tcp") {
			out = append(out, strings.TrimSuffix(of.GetKey(), " . tcp . 80"))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (f *fakeAggregator) count() int { return len(f.Updates()) }

// poisoned refuses every update with one of these endpoints, by name or not.
func poisoned(named bool, values ...string) func(map[string]string) []*weftv1.Violation {
	return func(elements map[string]string) []*weftv1.Violation {
		for _, k := range slices.Sorted(maps.Keys(elements)) {
			if !slices.Contains(values, elements[k]) {
				continue
			}
			v := &weftv1.Violation{Message: "operation not supported", Reason: weftv1.Violation_REASON_KERNEL}
			if named {
				v.Object = nametest.Parse(k)
			}
			return []*weftv1.Violation{v}
		}
		return nil
	}
}

var errStopped = errors.New("stopped by the test")

// run runs a frontend until the test ends; ended gives Run's error.
func run(t *testing.T, cfg Config) (f *Frontend, ended <-chan error) {
	t.Helper()
	return runAt(t, cfg, -1)
}

// runAt is run with a least time between two updates.
func runAt(t *testing.T, cfg Config, period time.Duration) (f *Frontend, ended <-chan error) {
	t.Helper()
	cfg.NodeName, cfg.MinSyncPeriod = "node-1", period
	f, err := New(cfg)
	must(t, err)
	return f, start(t, f)
}

// runWithSource runs a frontend and its source until one of them fails.
func runWithSource(ctx context.Context, f *Frontend) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.cfg.Source.Run(ctx) })
	g.Go(func() error { return f.Run(ctx) })
	return g.Wait()
}

// start runs a frontend until the test ends; the channel gives Run's error.
func start(t testing.TB, f *Frontend) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	done, out := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		out <- runWithSource(ctx, f)
	}()
	t.Cleanup(func() { cancel(errStopped); <-done })
	return out
}

// script is a source that delivers what the test tells it to: objects as they are
// now, gone, versions of the API server and allKnown.
type script struct {
	batches chan []any
	sub     source.Subscription
	changes func(before, after source.Object) []source.Event
}

// gone is an object that does not exist any more.
type gone struct{ object source.Object }

// allKnown means that the source has delivered everything that exists.
type allKnown struct{}

// newScript starts with these changes, and is synced then.
func newScript(first ...any) *script {
	s := &script{batches: make(chan []any, 100)}
	s.batches <- append(first, allKnown{})
	return s
}

func (s *script) deliver(changes ...any) { s.batches <- changes }

func (s *script) Subscribe(sub source.Subscription) (err error) {
	s.sub = sub
	s.changes, err = sub.Changes()
	return err
}

func (s *script) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case b := <-s.batches:
			if err := s.apply(b); err != nil {
				return err
			}
		}
	}
}

// apply delivers one batch.
func (s *script) apply(batch []any) error {
	var events []source.Event
	synced := false
	for _, c := range batch {
		var before, after source.Object
		switch c := c.(type) {
		case allKnown:
			synced = true
			continue
		case *version.Version:
			s.sub.Version(c)
			continue
		case gone:
			before = c.object
		case source.Object:
			after = c
		default:
			return fmt.Errorf("unexpected change %T", c)
		}
		events = append(events, s.changes(before, after)...)
	}
	if len(events) > 0 {
		s.sub.Deliver(events)
	}
	if synced {
		s.sub.Synced()
	}
	return nil
}

// setService makes a Service default/name with a TCP and a UDP port 80.
func setService(name string, nodePort int32, ips ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = ips[0], ips
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: strings.ToLower(string(p)), Protocol: p, Port: 80, NodePort: nodePort})
	}
	return s
}

func serviceGone(name string) gone {
	return gone{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}}
}

func nodeGone(name string) gone { return gone{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}} }

// setSlice makes the EndpointSlice of a Service for the family of its endpoints,
// which all listen on 8080. Local ones end in a star.
func setSlice(service string, family discoveryv1.AddressType, addrs ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: family}
	s.Namespace, s.Name = "default", service+"-"+strings.ToLower(string(family))
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		name, port := strings.ToLower(string(p)), int32(8080)
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &p, Port: &port})
	}
	for _, a := range addrs {
		node := "node-2"
		a, local := strings.CutSuffix(a, "*")
		if local {
			node = "node-1"
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, NodeName: &node})
	}
	return s
}

func setNode(addrs ...netip.Addr) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	for _, a := range addrs {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	return n
}

var (
	must  = publishtest.Must
	await = publishtest.Await
)
