package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// probes returns the status of /healthz and of /livez.
func probes(f *Frontend) string {
	get := func(handler http.HandlerFunc) int {
		w := httptest.NewRecorder()
		handler(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Code
	}
	return fmt.Sprint(get(f.Health().Healthz), " ", get(f.Health().Livez))
}

// TestHealthFollowsCommits has changes wait for an aggregator that is away: the node
// is unhealthy after twice the sync period, and healthy with the commit. It is alive all the
// time, because a restart would not bring back the aggregator.
//
// Behaviour: 125, 128, 136.
func TestHealthFollowsCommits(t *testing.T) {
	fake, clock := newFake(t), publishtest.NewClock()
	src := newScript(append(many(1), setNode(netip.MustParseAddr("192.0.2.1")))...)
	f, _ := run(t, Config{Source: src, Socket: fake.Socket, Now: clock.Now, SyncPeriod: 30 * time.Second})
	await(t, "the first commit", func() bool { return f.Status().Published && f.Status().Pending.IsZero() })
	check := func(what, want string) {
		t.Helper()
		publishtest.Equal(t, fmt.Sprintf("%s: /healthz and /livez", what), probes(f), want)
	}
	check("after the first commit", "200 200")
	clock.Move(time.Hour)
	check("an hour without a change", "200 200")
	fake.Stop()
	clock.Move(time.Hour)
	check("an hour without an aggregator and without a change", "200 200")
	await(t, "the missing aggregator to be reported", func() bool {
		err := f.Degraded()
		return errors.Is(err, client.ErrUnavailable) && strings.Contains(err.Error(), "the aggregator does not answer") && f.Ready() == nil && f.inForce() == nil
	})
	src.deliver(many(2)...)
	await(t, "the event", func() bool { return !f.Status().Pending.IsZero() })
	if got := f.Status().Pending; !got.Equal(clock.Now()) {
		t.Errorf("waits since %v, want %v", got, clock.Now())
	}
	clock.Move(time.Minute - 1)
	// What comes later does not make it younger.
	src.deliver(many(3)...)
	await(t, "the later event", func() bool { return f.state.backlog.Length(serviceEvents) >= 5 })
	check("just in time", "200 200")
	clock.Move(1)
	check("late", "503 200")
	clock.Move(time.Hour)
	check("an hour late", "503 200")
	fake.Clear()
	fake.Start(t)
	await(t, "all Services", func() bool { return fake.served() == all(3) })
	await(t, "the acknowledgement", func() bool { return f.Status().Pending.IsZero() && f.Degraded() == nil })
	check("caught up", "200 200")
}

// TestEligible has the Node object missing, there, and leaving.
//
// Behaviour: 126, 128.
func TestEligible(t *testing.T) {
	fake := newFake(t)
	src := newScript(many(1)...)
	f, err := New(Config{Source: src, NodeName: "node-1", Socket: fake.Socket})
	must(t, err)
	deliver := func(changes ...any) {
		t.Helper()
		must(t, src.apply(changes))
	}
	check := func(what, want string) {
		t.Helper()
		publishtest.Equal(t, fmt.Sprintf("%s: /healthz and /livez", what), probes(f), want)
	}
	deliver(many(1)...)
	check("nothing in force", "503 200")
	f.health.Updated()
	check("starting up", "200 200")
	deliver((<-src.batches)[2:]...)
	check("no Node object", "503 200")
	deliver(setNode(netip.MustParseAddr("192.0.2.1")))
	check("a Node", "200 200")
	leaving := setNode(netip.MustParseAddr("192.0.2.1"))
	leaving.Spec.Taints = []corev1.Taint{{Key: model.DeletionTaint}}
	deliver(leaving)
	check("a Node that leaves", "503 200")
	other := leaving.DeepCopy()
	other.Name = "node-2"
	deliver(setNode(netip.MustParseAddr("192.0.2.1")), other, nodeGone("node-2"))
	check("it stays, and another one leaves", "200 200")
	deliver(nodeGone("node-1"))
	check("it is deleted", "503 200")
}

// ports is a health.Network: each address is a Unix socket in a directory.
type ports struct{ dir string }

func (p ports) path(address string) string {
	return filepath.Join(p.dir, strings.NewReplacer(":", "_", "[", "", "]", "").Replace(address))
}

func (p ports) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "unix", p.path(address))
}

func (p ports) Addresses() ([]netip.Addr, error) { return nil, nil }

// ask returns what the server of a Service answers, "closed" if there is none.
func (p ports) ask(address string) string {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.path(address))
	}}}
	resp, err := c.Get("http://node/healthz")
	if err != nil {
		return "closed"
	}
	defer resp.Body.Close()
	return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("X-Load-Balancing-Endpoint-Weight"))
}

// TestServiceHealthAfterCommit asks for a Service's local endpoints before and after
// the commit that changes them.
//
// Behaviour: 117, 118, 121, 124.
func TestServiceHealthAfterCommit(t *testing.T) {
	fake, network := newFake(t), ports{t.TempDir()}
	fake.Judge(func(map[string]string) []*weftv1.Violation {
		return []*weftv1.Violation{{Message: "no", Reason: weftv1.Violation_REASON_PERMISSION}}
	})
	service := func(port int32) *corev1.Service {
		return balanced("web", port, corev1.ServiceExternalTrafficPolicyLocal, "10.96.0.1")
	}
	// slice has so many local endpoints.
	slice := func(local int) *discoveryv1.EndpointSlice {
		var addrs []string
		for i := range local {
			addrs = append(addrs, fmt.Sprintf("10.244.0.%d*", i+1))
		}
		return setSlice("web", ipv4, addrs...)
	}
	src := newScript(service(32000), slice(2))
	_, _ = run(t, Config{Source: src, Socket: fake.Socket, Network: network})
	const address = "0.0.0.0:32000"
	// A rejected update: nothing is served yet.
	await(t, "an attempt", func() bool { return fake.count() >= 1 })
	publishtest.Equal(t, "before the commit", network.ask(address), "closed")
	fake.Judge(nil)
	await(t, "the port", func() bool { return network.ask(address) == "200 2" })
	// A commit that waits: the count is the old one.
	reached, release := make(chan struct{}), make(chan struct{})
	fake.Judge(func(map[string]string) []*weftv1.Violation { close(reached); <-release; return nil })
	src.deliver(slice(3))
	<-reached
	publishtest.Equal(t, "while the commit waits", network.ask(address), "200 2")
	close(release)
	await(t, "the commit", func() bool { return network.ask(address) == "200 3" })
	fake.Judge(nil)
	src.deliver(slice(0))
	await(t, "no local endpoints", func() bool { return network.ask(address) == "503 0" })
	// A change without a commit takes effect, too.
	src.deliver(service(32001))
	await(t, "the new port", func() bool { return network.ask("0.0.0.0:32001") == "503 0" && network.ask(address) == "closed" })
}

// notes keeps events of Services.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) Service(name types.NamespacedName, kind, reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fmt.Sprintf("%s %s %s %s", name, kind, reason, message))
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.list, "\n")
}

// TestUnpublished has nothing in force, for one reason after the other: the node is not
// healthy, and the frontend is not ready, until the first commit. It is alive all the time.
//
// Behaviour: 128.
func TestUnpublished(t *testing.T) {
	fake := newFake(t)
	fake.Stop()
	src := &script{batches: make(chan []any, 1)}
	f, err := New(Config{Source: src, NodeName: "node-1", Socket: fake.Socket})
	must(t, err)
	check := func(what, reason string) {
		t.Helper()
		if err := f.Ready(); err == nil || !strings.Contains(err.Error(), reason) || probes(f) != "503 200" {
			t.Errorf("%s: Ready is %v, want %q; /healthz and /livez are %s, want 503 200", what, err, reason, probes(f))
		}
	}
	check("before the source has delivered anything", "are not known yet")
	start(t, f)
	await(t, "the error of the socket", func() bool { return errors.Is(f.Ready(), client.ErrUnavailable) })
	check("without an aggregator", "unavailable")
	fake.Judge(func(map[string]string) []*weftv1.Violation {
		return []*weftv1.Violation{{Message: "uid 1234 is not a publisher", Reason: weftv1.Violation_REASON_PERMISSION}}
	})
	fake.Start(t)
	src.deliver(append(many(1), setNode(netip.MustParseAddr("192.0.2.1")), allKnown{})...)
	await(t, "the denial", func() bool { return errors.Is(f.Ready(), client.ErrPermission) })
	check("denied", "uid 1234 is not a publisher")
	fake.Judge(nil)
	await(t, "the commit", func() bool { return f.Ready() == nil && probes(f) == "200 200" })
	// Another process after it has the rules of this one in force from the start.
	g, err := New(Config{Source: &script{}, NodeName: "node-1", Socket: fake.Socket})
	must(t, err)
	start(t, g)
	await(t, "the earlier rules", func() bool { return g.Status().Restored })
	if err := g.inForce(); err != nil || g.Ready() == nil {
		t.Errorf("after a restart: in force %v, ready %v", err, g.Ready())
	}
}

// TestFamilyStays has IPv6 refused after rules for it are in force: they stay, and the
// missed changes follow once it is accepted again. The node is unhealthy when that takes
// longer than any change may, though IPv4 goes on.
//
// Behaviour: 96, 125, 136.
func TestFamilyStays(t *testing.T) {
	f := newFake(t)
	events := append(many(2), setService("six", 0, "10.96.0.3", "fd00::3"), setSlice("six", ipv4, "10.244.0.3"), setNode(netip.MustParseAddr("192.0.2.1")))
	src := newScript(events...)
	clock := publishtest.NewClock()
	frontend, _ := run(t, Config{Source: src, Socket: f.Socket, Now: clock.Now, SyncPeriod: 30 * time.Second})
	six := func() string {
		var out []string
		for k := range f.Elements() {
			if rest, ok := strings.CutPrefix(strings.TrimSuffix(k, " }"), "element ip6 weft cluster-ips { "); ok {
				out = append(out, rest)
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	await(t, "both families", func() bool { return f.served() == all(3) && six() == "fd00::3" })
	f.Judge(func(elements map[string]string) []*weftv1.Violation {
		if _, other := elements[object("ip6", "cluster-ips", "fd00::9")]; !other {
			return nil
		}
		return []*weftv1.Violation{{Object: nametest.Parse("chain ip6 weft nat-prerouting"), Message: "cannot allocate memory", Reason: weftv1.Violation_REASON_KERNEL}}
	})
	src.deliver(setService("nine", 0, "10.96.0.4", "fd00::9"), setSlice("nine", ipv4, "10.244.0.4"))
	await(t, "IPv4 alone", func() bool { return f.served() == all(4) && six() == "fd00::3" })
	await(t, "the family that stays to be reported", func() bool {
		err := frontend.Degraded()
		return err != nil && strings.Contains(err.Error(), "IPv6 stays as it was") && strings.Contains(err.Error(), "cannot allocate memory") && frontend.Ready() == nil
	})
	nine := model.Key{Namespace: "default", Name: "nine"}
	if o := frontend.publisher.Outcome(nine); o.State != publish.Wanted || o.Revision != 0 || o.Reason == nil {
		t.Errorf("a Service without its IPv6: %+v", o)
	}
	if o := frontend.publisher.Outcome(model.Key{Namespace: "default", Name: "s0"}); o.State != publish.InForce {
		t.Errorf("a Service of IPv4: %+v", o)
	}
	clock.Move(time.Minute - 1)
	publishtest.Equal(t, "/healthz and /livez before the time is up", probes(frontend), "200 200")
	src.deliver(setService("s4", 0, "10.96.0.5"), setSlice("s4", ipv4, "10.244.0.5"))
	await(t, "one more of IPv4", func() bool { return f.served() == all(5) })
	clock.Move(1)
	publishtest.Equal(t, "/healthz and /livez when a family is late", probes(frontend), "503 200")
	f.Judge(nil)
	await(t, "IPv6 again", func() bool { return six() == "fd00::3 fd00::9" })
	await(t, "the Service as a whole", func() bool { return frontend.publisher.Outcome(nine).State == publish.InForce })
	await(t, "health", func() bool {
		return frontend.Status().Pending.IsZero() && probes(frontend) == "200 200" && frontend.Degraded() == nil
	})
}

// TestUnusedFamilyRefused has a kernel that refuses IPv6, and no Service with it: the
// node is healthy.
//
// Behaviour: 96, 125.
func TestUnusedFamilyRefused(t *testing.T) {
	f, clock := newFake(t), publishtest.NewClock()
	// Twice: as it is, and once more as a whole. Then the family is set aside.
	refusals := 0
	f.Judge(func(map[string]string) []*weftv1.Violation {
		if refusals == 2 {
			return nil
		}
		refusals++
		return []*weftv1.Violation{{Object: nametest.Parse("table ip6 weft"), Message: "operation not supported", Reason: weftv1.Violation_REASON_KERNEL}}
	})
	frontend, _ := run(t, Config{Source: newScript(append(many(3), setNode(netip.MustParseAddr("192.0.2.1")))...), Socket: f.Socket, Now: clock.Now, SyncPeriod: 30 * time.Second})
	await(t, "IPv4 to be served", func() bool { return f.served() == all(3) && frontend.Status().Pending.IsZero() })
	clock.Move(time.Hour)
	// A fourth update would be that with the family.
	if got, n := probes(frontend), f.count(); got != "200 200" || n != 3 {
		t.Errorf("/healthz and /livez are %s after %d updates, want 200 200 after 3", got, n)
	}
	if err := frontend.Degraded(); err != nil {
		t.Errorf("what no Service needs is reported: %v", err)
	}
}

// balanced makes the Service of setService one of a load balancer that asks on a
// port.
func balanced(name string, port int32, policy corev1.ServiceExternalTrafficPolicy, ip string) *corev1.Service {
	e := setService(name, 30080, ip)
	e.Spec.Type = corev1.ServiceTypeLoadBalancer
	e.Spec.ExternalTrafficPolicy = policy
	e.Spec.HealthCheckNodePort = port
	return e
}

// TestProgrammingLatencyFromEvents has an EndpointSlice say when it changed in the
// cluster.
//
// Behaviour: 158.
func TestProgrammingLatencyFromEvents(t *testing.T) {
	fake := newFake(t)
	reg := prometheus.NewPedanticRegistry()
	src := newScript(many(1)...)
	f, _ := run(t, Config{Source: src, Socket: fake.Socket, Registerer: reg})
	await(t, "the first commit", func() bool { return f.Status().Published && f.Status().Pending.IsZero() })
	at := time.Now().UTC()
	e := setSlice("s0", ipv4, "10.244.9.9")
	e.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: at.Format(time.RFC3339Nano)}
	src.deliver(e)
	await(t, "the commit", func() bool { return f.Status().Revision == 2 && f.Status().Pending.IsZero() })
	took := time.Since(at).Seconds()
	await(t, "the observation", func() bool {
		n, err := testutil.GatherAndCount(reg, metricProgramming)
		return err == nil && n == 1 // IPv6 did not change
	})
	got := histogram(t, reg, metricProgramming, "IPv4")
	if got.count != 1 || got.sum <= 0 || got.sum > took+1 {
		t.Errorf("observed %d in %v s, want 1 in at most %v s", got.count, got.sum, took)
	}
	bounds := got.bounds
	if len(bounds) != 81 || !slices.Equal(bounds[:5], []float64{0, 0.25, 0.5, 1, 2}) || !slices.Equal(bounds[60:64], []float64{58, 59, 60, 65}) || bounds[80] != 300 {
		t.Errorf("buckets %v", bounds)
	}
}

// TestConflictIsAnEvent tells the owner of the younger Service that another one has
// its address.
//
// Behaviour: 37.
func TestConflictIsAnEvent(t *testing.T) {
	fake := newFake(t)
	var events notes
	older, younger := setService("older", 0, "10.96.0.1"), setService("younger", 0, "10.96.0.1")
	older.CreationTimestamp.Time = time.Unix(1000, 0)
	younger.CreationTimestamp.Time = time.Unix(2000, 0)
	// Of two other Services that conflict, neither has an endpoint on this node.
	other, another := setService("other", 0, "10.96.0.2"), setService("another", 0, "10.96.0.2")
	f, _ := run(t, Config{Source: newScript(
		other, another, younger, older, setSlice("other", ipv4, "10.244.0.2"), setSlice("another", ipv4, "10.244.0.3"), setSlice("older", ipv4, "10.244.0.1*"),
	), Socket: fake.Socket, Events: &events})
	await(t, "the event", func() bool { return strings.Contains(events.String(), "default/younger Warning AddressConflict ") })
	await(t, "the commit", func() bool { return f.Status().Published })
	if got := events.String(); strings.Count(got, "Warning") != 1 {
		t.Errorf("events:\n%s", got)
	}
}
