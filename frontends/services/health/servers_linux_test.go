package health

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// inside is a Network in a namespace of the test. With early it lists 203.0.113.9 before that is there.
type inside struct {
	ns    *nfttest.NS
	early atomic.Bool

	listening struct {
		mu  sync.Mutex
		all []net.Listener
	}
}

func (n *inside) Listen(ctx context.Context, network, address string) (l net.Listener, err error) {
	err = n.ns.Do(func() error { l, err = Host{}.Listen(ctx, network, address); return err })
	if err == nil {
		n.listening.mu.Lock()
		defer n.listening.mu.Unlock()
		n.listening.all = append(n.listening.all, l)
	}
	return l, err
}

func (n *inside) Addresses() (out []netip.Addr, err error) {
	err = n.ns.Do(func() error { out, err = Host{}.Addresses(); return err })
	if n.early.Load() {
		out = append(out, netip.MustParseAddr("203.0.113.9"))
	}
	return out, err
}

// answer is what a load balancer gets.
type answer struct {
	code   int
	weight string
	body   string
	header http.Header
}

// ask requests a URL from inside of the namespace.
func (n *inside) ask(url string) (answer, error) {
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
		err = n.ns.Do(func() error { c, err = new(net.Dialer).DialContext(ctx, network, address); return err })
		return c, err
	}}
	resp, err := (&http.Client{Transport: tr, Timeout: 3 * time.Minute}).Get(url)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("X-Load-Balancing-Endpoint-Weight"), string(b), resp.Header}, err
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) Service(name types.NamespacedName, kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s %s %s: %s", name, kind, reason, message))
}

func (r *recorder) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

const (
	nodeV4 = "192.0.2.1"
	nodeV6 = "2001:db8::1"
)

// bench are servers in a namespace with the addresses of a node, and others.
type bench struct {
	inside
	*Servers
	events  recorder
	healthy atomic.Bool
}

func newBench(t *testing.T, prefixes ...string) *bench {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces)
	b := &bench{inside: inside{ns: nfttest.New(t)}}
	for _, a := range []string{nodeV4 + "/32", "198.51.100.1/32", nodeV6 + "/128"} {
		b.ns.Run(t, "ip", "address", "add", a, "dev", "lo")
	}
	b.healthy.Store(true)
	cfg := ServersConfig{
		NodeName: "node-1", Families: [model.NumFamilies]bool{true, true}, Network: &b.inside, Events: &b.events,
		Healthy: b.healthy.Load, Retry: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}
	var list []netip.Prefix
	for _, p := range prefixes {
		list = append(list, netip.MustParsePrefix(p))
	}
	cfg.NodePortAddresses = model.NodePorts(list...)
	b.Servers = NewServers(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		publishtest.Equal(t, "ports are open after the end", b.Open(model.IPv4)+b.Open(model.IPv6), 0)
	})
	return b
}

// listeners returns where the namespace is listened at, sorted by ss.
func (b *bench) listeners(t *testing.T) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(b.ns.Run(t, "ss", "-Hltn")) {
		out = append(out, strings.Fields(line)[3])
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func set(name string, port uint16, local int) model.Change {
	key := model.Key{Namespace: "default", Name: name}
	return model.Change{Name: key, New: &model.Service{
		Name: key, HealthCheckNodePort: port, LocalReady: [model.NumFamilies]int{local, local},
		ClusterIPs: [model.NumFamilies]netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::1")},
	}}
}

func gone(name string) model.Change {
	return model.Change{Name: model.Key{Namespace: "default", Name: name}}
}

var node = &model.Node{Known: true, Addresses: [model.NumFamilies]netip.Addr{netip.MustParseAddr(nodeV4), netip.MustParseAddr(nodeV6)}}

// await polls until a URL gives the code; 0 means that no server listens.
func (b *bench) await(t *testing.T, url string, code int) answer {
	t.Helper()
	return b.awaitWeight(t, url, code, "")
}

// awaitWeight is await with the weight that the answer must have, if any.
func (b *bench) awaitWeight(t *testing.T, url string, code int, weight string) answer {
	t.Helper()
	var a answer
	var err error
	eventually(t, func() bool {
		a, err = b.ask(url)
		return err == nil && a.code == code && (weight == "" || a.weight == weight) || code == 0 && refused(err)
	}, func() string { return fmt.Sprintf("%s is %+v (%v), want %d", url, a, err, code) })
	return a
}

// eventually polls a condition.
func eventually(t *testing.T, ok func() bool, problem func() string) {
	t.Helper()
	deadline, tick := time.After(3*time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(problem())
		}
	}
}

func refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "connection refused")
}

// TestServiceAnswer asks as a load balancer does, and compares with kube-proxy's
// answer byte by byte.
//
// Behaviour: 117, 118, 119, 120.
func TestServiceAnswer(t *testing.T) {
	b := newBench(t)
	b.Apply([]model.Change{set("web", 30080, 2), set("none", 0, 3)}, node)
	text := func(local int, healthy bool) string {
		return fmt.Sprintf("{\n\t\"service\": {\n\t\t\"namespace\": \"default\",\n\t\t\"name\": \"web\"\n\t},\n\t\"localEndpoints\": %d,\n\t\"serviceProxyHealthy\": %t\n}", local, healthy)
	}
	for _, path := range []string{"/", "/healthz", "/any/path?q"} {
		a := b.await(t, "http://"+nodeV4+":30080"+path, 200)
		if a.body != text(2, true) || a.weight != "2" || a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %+v", path, a)
		}
	}
	b.await(t, "http://["+nodeV6+"]:30080/", 200)
	b.healthy.Store(false)
	if a := b.await(t, "http://"+nodeV4+":30080/", 503); a.body != text(2, false) || a.weight != "2" {
		t.Errorf("an unhealthy proxy answers %+v", a)
	}
	b.healthy.Store(true)
	b.Apply([]model.Change{set("web", 30080, 0)}, nil)
	if a := b.await(t, "http://"+nodeV4+":30080/", 503); a.body != text(0, true) || a.weight != "0" {
		t.Errorf("without endpoints: %+v", a)
	}
	b.Apply([]model.Change{set("web", 30080, 1)}, nil)
	b.await(t, "http://"+nodeV4+":30080/", 200)
	b.Apply([]model.Change{gone("web")}, nil)
	b.await(t, "http://"+nodeV4+":30080/", 0)
	publishtest.Equal(t, "listening on", b.listeners(t), "")
}

// TestServiceAddresses compares where the servers listen with where NodePorts
// answer.
//
// Behaviour: 122.
func TestServiceAddresses(t *testing.T) {
	for _, tt := range []struct {
		name     string
		prefixes []string
		want     string
	}{
		{"all", []string{"0.0.0.0/0", "::/0"}, "0.0.0.0:30080 [::]:30080"},
		{"all of one family", []string{"0.0.0.0/0"}, "0.0.0.0:30080"},
		{"some", []string{"198.51.100.0/24", "127.0.0.0/8"}, "127.0.0.1:30080 198.51.100.1:30080"},
		{"loopback alone", []string{"127.0.0.0/8", "::1/128"}, "127.0.0.1:30080 [::1]:30080"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.prefixes...)
			b.Apply([]model.Change{set("web", 30080, 1)}, node)
			b.finish(t, tt.want)
		})
	}
}

// finish waits until the namespace is listened at as wanted.
func (b *bench) finish(t *testing.T, want string) {
	t.Helper()
	got := ""
	eventually(t, func() bool { got = b.listeners(t); return got == want }, func() string { return fmt.Sprintf("listening on %q, want %q", got, want) })
}

// TestServiceAddressesCome has the node's addresses known, and on an interface,
// only after the Service.
//
// Behaviour: 122.
func TestServiceAddressesCome(t *testing.T) {
	b := newBench(t)
	b.Apply([]model.Change{set("web", 30080, 1)}, nil)
	b.finish(t, "0.0.0.0:30080 [::]:30080")
	b.Apply(nil, node)
	b.finish(t, "192.0.2.1:30080 [2001:db8::1]:30080")
	b.Apply(nil, &model.Node{Addresses: [model.NumFamilies]netip.Addr{netip.MustParseAddr("203.0.113.9")}})
	b.finish(t, "")
	b.ns.Run(t, "ip", "address", "add", "203.0.113.9/32", "dev", "lo")
	b.finish(t, "203.0.113.9:30080")
	b.ns.Run(t, "ip", "address", "delete", "203.0.113.9/32", "dev", "lo")
	b.finish(t, "")
}

// TestServiceAddressNotThere listens on an address that cannot be listened on yet, as
// those of IPv6 while the kernel looks for duplicates, without an event.
//
// Behaviour: 122.
func TestServiceAddressNotThere(t *testing.T) {
	b := newBench(t, "192.0.2.0/24", "203.0.113.0/24")
	b.early.Store(true)
	b.Apply([]model.Change{set("web", 30080, 1)}, node)
	b.finish(t, "192.0.2.1:30080")
	b.ns.Run(t, "ip", "address", "add", "203.0.113.9/32", "dev", "lo")
	b.finish(t, "192.0.2.1:30080 203.0.113.9:30080")
	if got := b.events.list(); len(got) != 0 {
		t.Errorf("events %q", got)
	}
}

// TestServicePortChange moves a Service to another port, swaps the ports of two, and
// takes a port that somebody else has until it comes free.
//
// Behaviour: 123.
func TestServicePortChange(t *testing.T) {
	b := newBench(t)
	b.Apply([]model.Change{set("a", 30080, 1), set("b", 30081, 2)}, node)
	b.await(t, "http://"+nodeV4+":30080/", 200)
	b.Apply([]model.Change{set("a", 30082, 1)}, nil)
	b.await(t, "http://"+nodeV4+":30082/", 200)
	b.await(t, "http://"+nodeV4+":30080/", 0)
	b.Apply([]model.Change{set("a", 30081, 1), set("b", 30082, 2)}, nil)
	// No process is started meanwhile: between fork and exec it would hold the
	// ports that are closed.
	b.awaitWeight(t, "http://"+nodeV4+":30082/", 200, "2")
	b.awaitWeight(t, "http://"+nodeV4+":30081/", 200, "1")
	b.finish(t, "192.0.2.1:30081 192.0.2.1:30082 [2001:db8::1]:30081 [2001:db8::1]:30082")
	if got := b.events.list(); len(got) != 0 {
		t.Errorf("events %q", got)
	}

	taken, err := b.Listen(t.Context(), "tcp4", nodeV4+":30090")
	must(t, err)
	b.Apply([]model.Change{set("c", 30090, 1)}, nil)
	// The other family is not held up.
	b.await(t, "http://["+nodeV6+"]:30090/", 200)
	b.awaitEvents(t, 1)
	const want = `default/c Warning FailedToStartServiceHealthcheck: node node-1 failed to start healthcheck "default/c" on port 30090: listen tcp4 192.0.2.1:30090: bind: address already in use`
	if got := b.events.list(); len(got) != 1 || got[0] != want {
		t.Errorf("events %q, want %q", got, want)
	}
	// It is tried again without a commit, and said once.
	must(t, taken.Close())
	b.await(t, "http://"+nodeV4+":30090/", 200)
	if got := b.events.list(); len(got) != 1 {
		t.Errorf("events %q", got)
	}
	// Of two Services the one that has the port keeps it.
	b.Apply([]model.Change{set("a", 30090, 7)}, nil)
	b.awaitEvents(t, 2)
	if a := b.await(t, "http://"+nodeV4+":30090/", 200); a.weight != "1" {
		t.Errorf("another Service took the port over: %+v", a)
	}
	b.Apply([]model.Change{gone("c")}, nil)
	b.awaitWeight(t, "http://"+nodeV4+":30090/", 200, "7")
}

func (b *bench) awaitEvents(t *testing.T, n int) {
	t.Helper()
	eventually(t, func() bool { return len(b.events.list()) >= n }, func() string { return fmt.Sprintf("%d events, want %d", len(b.events.list()), n) })
}

// TestServiceServerEnds opens a port again whose server ended by itself.
//
// Behaviour: 123.
func TestServiceServerEnds(t *testing.T) {
	b := newBench(t)
	b.Apply([]model.Change{set("web", 30080, 1)}, node)
	b.await(t, "http://"+nodeV4+":30080/", 200)
	b.listening.mu.Lock()
	for _, l := range b.listening.all {
		_ = l.Close()
	}
	b.listening.mu.Unlock()
	b.finish(t, "192.0.2.1:30080 [2001:db8::1]:30080")
	b.await(t, "http://"+nodeV4+":30080/", 200)
}

// TestServiceRelease closes all ports for good: another process has them then, and changes do not open them.
func TestServiceRelease(t *testing.T) {
	b := newBench(t)
	b.Apply([]model.Change{set("a", 30080, 1)}, node)
	b.await(t, "http://"+nodeV4+":30080/", 200)
	b.Release()
	b.Release()
	b.await(t, "http://"+nodeV4+":30080/", 0)
	taken, err := b.Listen(t.Context(), "tcp4", nodeV4+":30080")
	must(t, err)
	defer taken.Close()
	b.Apply([]model.Change{set("b", 30081, 1)}, nil)
	b.await(t, "http://"+nodeV4+":30081/", 0)
	if got := b.events.list(); len(got) != 0 {
		t.Errorf("events %q", got)
	}
}
