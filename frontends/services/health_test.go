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
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
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
		if got := probes(f); got != want {
			t.Errorf("%s: /healthz and /livez are %s, want %s", what, got, want)
		}
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
		if got := probes(f); got != want {
			t.Errorf("%s: /healthz and /livez are %s, want %s", what, got, want)
		}
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
	if got := network.ask(address); got != "closed" {
		t.Errorf("before the commit: %s", got)
	}
	fake.Judge(nil)
	await(t, "the port", func() bool { return network.ask(address) == "200 2" })
	// A commit that waits: the count is the old one.
	reached, release := make(chan struct{}), make(chan struct{})
	fake.Judge(func(map[string]string) []*weftv1.Violation { close(reached); <-release; return nil })
	src.deliver(slice(3))
	<-reached
	if got := network.ask(address); got != "200 2" {
		t.Errorf("while the commit waits: %s", got)
	}
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
