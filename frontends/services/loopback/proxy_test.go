package loopback

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-proxy/weft/frontends/services/health"
	"github.com/weft-proxy/weft/frontends/services/listen"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

func endpoints(texts ...string) model.Endpoints {
	var out []model.Endpoint
	for _, text := range texts {
		text, local := strings.CutSuffix(text, "*")
		out = append(out, model.Endpoint{Addr: netip.MustParseAddrPort(text), Local: local})
	}
	return model.MakeEndpoints(out...)
}

// put is a Service of both families with these ports.
func put(name string, ports ...model.Port) model.Change {
	s := &model.Service{Name: model.Key{Namespace: "default", Name: name}, Ports: ports}
	s.ClusterIPs = [model.NumFamilies]netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::1")}
	return model.Change{Name: s.Name, New: s}
}

// tcp is a TCP NodePort with IPv4 endpoints.
func tcp(number uint16, to ...string) model.Port {
	return model.Port{Protocol: model.TCP, NodePort: number, Backends: [model.NumFamilies]model.Backends{{Cluster: endpoints(to...)}}}
}

func edit(c model.Change, f func(*model.Service)) model.Change {
	f(c.New)
	return c
}

func testConfig() Config {
	return Config{
		NodeName: "node-1", Families: [model.NumFamilies]bool{true, true}, Events: health.NoEvents{}, Now: time.Now,
		Listen: health.Host{}.Listen, Retry: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}
}

func (p *Proxy) ports() string {
	var out []string
	all, _, _ := p.addresses()
	for _, a := range all {
		out = append(out, a.Service.Name+" "+a.At.String())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestPorts checks which ports and endpoints a Service has.
//
// Behaviour: 180, 181.
func TestPorts(t *testing.T) {
	both := tcp(30080, "10.244.1.1:80", "10.244.2.1:80*")
	both.Backends[model.IPv6].Cluster = endpoints("[fd00::2]:80")
	both.Backends[model.IPv4].Local = endpoints("10.244.2.1:80*")
	udp := tcp(30082, "10.244.1.1:53")
	udp.Protocol = model.UDP
	local := func(s *model.Service) { s.ExternalLocal = true }
	for name, tt := range map[string]struct {
		change   model.Change
		families [model.NumFamilies]bool
		want     string
		// of the first port
		endpoints int
	}{
		"both families":         {put("web", both), [model.NumFamilies]bool{true, true}, "web 127.0.0.1:30080, web [::1]:30080", 2},
		"one is not served":     {put("web", both), [model.NumFamilies]bool{true, false}, "web 127.0.0.1:30080", 2},
		"policy Local":          {edit(put("web", both), local), [model.NumFamilies]bool{true, true}, "web 127.0.0.1:30080", 1},
		"Local without one":     {edit(put("web", tcp(30080, "10.244.1.1:80")), local), [model.NumFamilies]bool{true, true}, "", 0},
		"internal policy":       {edit(put("web", both), func(s *model.Service) { s.InternalLocal = true }), [model.NumFamilies]bool{true, false}, "web 127.0.0.1:30080", 2},
		"no endpoint":           {put("web", tcp(30080)), [model.NumFamilies]bool{true, true}, "", 0},
		"no NodePort":           {put("web", tcp(0, "10.244.1.1:80")), [model.NumFamilies]bool{true, true}, "", 0},
		"UDP":                   {put("dns", udp), [model.NumFamilies]bool{true, true}, "", 0},
		"a Service of IPv6":     {edit(put("web", both), func(s *model.Service) { s.ClusterIPs[0] = netip.Addr{} }), [model.NumFamilies]bool{true, true}, "web [::1]:30080", 1},
		"two ports":             {put("web", tcp(30081, "10.244.1.1:80"), tcp(30080, "10.244.1.1:81")), [model.NumFamilies]bool{true, true}, "web 127.0.0.1:30080, web 127.0.0.1:30081", 1},
		"a Service that leaves": {model.Change{Name: model.Key{Namespace: "default", Name: "web"}}, [model.NumFamilies]bool{true, true}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig()
			cfg.Families = tt.families
			p := New(cfg)
			// Another form of the Service leaves nothing behind.
			p.Apply([]model.Change{put("web", tcp(31000, "10.244.1.1:80")), put("other", tcp(31001))})
			p.Apply([]model.Change{tt.change})
			want := tt.want
			if tt.change.Name.Name == "dns" {
				want = "web 127.0.0.1:31000"
			}
			publishtest.Equal(t, "ports", p.ports(), want)
			if tt.endpoints == 0 {
				return
			}
			all, _, _ := p.addresses()
			at := slices.MinFunc(all, func(a, b listen.Address) int { return a.At.Compare(b.At) })
			seen := make(map[netip.AddrPort]bool)
			for range 200 {
				to, ok := p.pick(at)
				if !ok {
					t.Fatalf("%v has no endpoint", at)
				}
				seen[to] = true
			}
			publishtest.Equal(t, "endpoints that are picked", len(seen), tt.endpoints)
		})
	}
}

// TestAffinity follows the endpoint of a port with ClientIP affinity through time and changes.
//
// Behaviour: 182.
func TestAffinity(t *testing.T) {
	clock := publishtest.NewClock()
	cfg := testConfig()
	cfg.Now = clock.Now
	p := New(cfg)
	at := listen.Address{Service: model.Key{Namespace: "default", Name: "web"}, At: netip.MustParseAddrPort("127.0.0.1:30080")}
	set := func(timeout time.Duration, to ...string) {
		p.Apply([]model.Change{edit(put("web", tcp(30080, to...)), func(s *model.Service) { s.Affinity = timeout })})
	}
	pick := func() netip.AddrPort {
		t.Helper()
		to, ok := p.pick(at)
		if !ok {
			t.Fatal("no endpoint")
		}
		return to
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("10.244.1.%d:80", i+1)
	}
	set(time.Minute, many...)
	first := pick()
	// Each connection starts the time again.
	for range 10 {
		clock.Move(time.Minute)
		publishtest.Equal(t, "endpoint within the timeout", pick(), first)
	}
	set(time.Minute, append([]string{"10.244.2.1:80"}, many...)...)
	publishtest.Equal(t, "endpoint after another one came", pick(), first)
	// One of 100 picks can be the same.
	changes := 0
	for range 10 {
		clock.Move(time.Minute + 1)
		if now := pick(); now != first {
			first = now
			changes++
		}
	}
	if changes < 5 {
		t.Errorf("after the timeout there were %d other endpoints in 10 picks", changes)
	}
	set(time.Minute, slices.DeleteFunc(slices.Clone(many), func(e string) bool { return e == first.String() })...)
	second := pick()
	if second == first {
		t.Errorf("%s left and is picked", first)
	}
	publishtest.Equal(t, "endpoint after the re-pick", pick(), second)
	clock.Move(time.Hour)
	set(time.Minute, second.String())
	publishtest.Equal(t, "the only endpoint", pick(), second)
	set(0, many...)
	seen := make(map[netip.AddrPort]bool)
	for range 200 {
		seen[pick()] = true
	}
	if len(seen) < 10 {
		t.Errorf("without affinity %d endpoints are picked", len(seen))
	}
}

// exhausted is a listener without files.
type exhausted struct {
	net.Listener
	calls atomic.Int64
}

func (l *exhausted) Accept() (net.Conn, error) {
	l.calls.Add(1)
	return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
}

func (l *exhausted) Close() error { return nil }

// TestAcceptErrors pauses after errors, and ends with the port.
//
// Behaviour: 185.
func TestAcceptErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &exhausted{}
		s := New(testConfig()).server(listen.Address{}, l)
		done := make(chan error, 1)
		go func() { done <- s.Serve() }()
		<-time.After(10*time.Second + acceptPause/2)
		publishtest.Equal(t, "calls of accept in 10 s", l.calls.Load(), int64(10*time.Second/acceptPause)+1)
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestManyPorts has more ports than files.
//
// Behaviour: 184.
func TestManyPorts(t *testing.T) {
	cfg := testConfig()
	cfg.Ports = 2
	cfg.Listen = health.Host{}.Listen
	p := New(cfg)
	b := begin(t, p)
	var changes []model.Change
	for i := range 4 {
		changes = append(changes, put(fmt.Sprint(i), tcp(freePort(t), "10.244.1.1:80")))
	}
	p.Apply(changes)
	b.await("2 listeners and failures", func() bool { return p.Open(model.IPv4) == 2 && p.Failures(model.IPv4) >= 2 })
	p.Apply([]model.Change{{Name: changes[0].Name}, {Name: changes[1].Name}})
	b.await("the others", func() bool { return p.Open(model.IPv4) == 2 && !p.Failing() })
	if p.Failures(model.IPv6) != 0 || errors.Is(nil, net.ErrClosed) {
		t.Error("IPv6 has failures")
	}
}
