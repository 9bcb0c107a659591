package loopback

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/services/health"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// bench is a running proxy. Its endpoints are servers of the test.
type bench struct {
	testing.TB
	*Proxy
	stop func()
}

func begin(t testing.TB, p *Proxy) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	b := &bench{TB: t, Proxy: p}
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		publishtest.Equal(t, "open connections after the end", len(p.room), 0)
	})
	t.Cleanup(b.stop)
	return b
}

// await polls a condition.
func (b *bench) await(what string, ok func() bool) {
	b.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			b.Fatalf("missing: %s", what)
		}
	}
}

// freePort is a port without a listener.
func freePort(t testing.TB) uint16 {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String()).Port()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// endpoint serves connections at an address until the test ends.
func endpoint(t testing.TB, network, at string, serve func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen(network, at)
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

// echo answers with what it has got, once the client ends.
func echo(c *net.TCPConn) {
	all, err := io.ReadAll(c)
	if err == nil {
		_, _ = c.Write(all)
	}
}

// connect waits for the port.
func (b *bench) connect(at netip.AddrPort) *net.TCPConn {
	b.Helper()
	var c net.Conn
	b.await(fmt.Sprintf("a listener on %s", at), func() (ok bool) {
		var err error
		c, err = net.Dial("tcp", at.String())
		return err == nil
	})
	b.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// running has one Service web with endpoints on 127.0.0.1, behind a port of each family.
func running(t testing.TB, cfg Config, serve func(*net.TCPConn)) (b *bench, at [model.NumFamilies]netip.AddrPort, service model.Change) {
	t.Helper()
	port := tcp(freePort(t), endpoint(t, "tcp4", "127.0.0.1:0", serve))
	port.Backends[model.IPv6].Cluster = endpoints(endpoint(t, "tcp6", "[::1]:0", serve))
	b, service = begin(t, New(cfg)), put("web", port)
	b.Apply([]model.Change{service})
	for f, a := range model.Loopback {
		at[f] = netip.AddrPortFrom(a, port.NodePort)
	}
	return b, at, service
}

// TestPass sends much in both directions, with a half-closed end, over both families.
//
// Behaviour: 180.
func TestPass(t *testing.T) {
	b, at, _ := running(t, testConfig(), echo)
	sent := make([]byte, 5<<20+7)
	_, _ = rand.Read(sent)
	for f := range at {
		c := b.connect(at[f])
		_, err := c.Write(sent)
		must(t, err)
		must(t, c.CloseWrite())
		got, err := io.ReadAll(c)
		must(t, err)
		if !bytes.Equal(got, sent) {
			t.Errorf("%s: %d bytes came back, not the %d that were sent", at[f], len(got), len(sent))
		}
	}
	b.await("the end of both connections", func() bool { return len(b.room) == 0 })
}

// TestSlowClient has an endpoint that sends more than the client reads at once.
//
// Behaviour: 180.
func TestSlowClient(t *testing.T) {
	const total = 32 << 20
	b, at, _ := running(t, testConfig(), func(c *net.TCPConn) { _, _ = io.CopyN(c, zeros{}, total) })
	c := b.connect(at[0])
	n, err := io.Copy(io.Discard, struct{ io.Reader }{c})
	if n != total || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestReset passes a reset on in both directions.
//
// Behaviour: 180.
func TestReset(t *testing.T) {
	ends := make(chan error, 1)
	b, at, _ := running(t, testConfig(), func(c *net.TCPConn) {
		first := make([]byte, 1)
		if _, err := c.Read(first); err != nil || first[0] == 'r' {
			_ = c.SetLinger(0)
			return
		}
		_, err := c.Read(first)
		ends <- err
	})
	c := b.connect(at[0])
	_, err := c.Write([]byte("r"))
	must(t, err)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the endpoint reset: the client has %v", err)
	}
	c = b.connect(at[0])
	_, err = c.Write([]byte("w"))
	must(t, err)
	must(t, c.SetLinger(0))
	must(t, c.Close())
	if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client reset: the endpoint has %v", err)
	}
	b.await("the end of both connections", func() bool { return len(b.room) == 0 })
}

// TestPortEnds closes the port and its connections with the Service, its last endpoint, and the feature. Other
// changes leave them alone.
//
// Behaviour: 180.
func TestPortEnds(t *testing.T) {
	for name, end := range map[string]func(*bench, model.Change){
		"the Service goes":       func(b *bench, c model.Change) { b.Apply([]model.Change{{Name: c.Name, Old: c.New}}) },
		"the last endpoint goes": func(b *bench, c model.Change) { b.Apply([]model.Change{put("web", tcp(c.New.Ports[0].NodePort))}) },
		"another port":           func(b *bench, c model.Change) { b.Apply([]model.Change{put("web", tcp(freePort(b), "10.244.1.1:80"))}) },
		"the ports are released": func(b *bench, _ model.Change) { b.Release() },
		"the process ends":       func(b *bench, _ model.Change) { b.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			b, at, service := running(t, testConfig(), func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
			c := b.connect(at[0])
			talk := func() error {
				_, err := c.Write([]byte("?"))
				if err == nil {
					_, err = io.ReadFull(c, make([]byte, 1))
				}
				return err
			}
			must(t, talk())
			b.Apply([]model.Change{put("other", tcp(freePort(t), "10.244.1.1:80")), put("web", tcp(at[0].Port(), "10.244.1.1:80"))})
			b.await("the port of IPv6 closes", func() bool { return b.Open(model.IPv6) == 0 })
			// The endpoint of the connection left, and another one is there.
			must(t, talk())
			end(b, service)
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("the connection goes on")
			}
			b.await("the port closes", func() bool {
				_, err := net.Dial("tcp", at[0].String())
				return errors.Is(err, syscall.ECONNREFUSED)
			})
		})
	}
}

// TestNoAnswer closes the client's connection if its endpoint does not answer, and serves the next one.
//
// Behaviour: 180.
func TestNoAnswer(t *testing.T) {
	cfg := testConfig()
	failing := true
	var mu sync.Mutex
	cfg.Dial = func(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > dialTimeout {
			t.Errorf("deadline %v, %t", deadline, ok)
		}
		mu.Lock()
		defer mu.Unlock()
		if failing {
			return nil, syscall.EHOSTUNREACH
		}
		return new(net.Dialer).DialTCP(ctx, "tcp", netip.AddrPort{}, to)
	}
	b, at, _ := running(t, cfg, echo)
	if n, err := b.connect(at[0]).Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	mu.Lock()
	failing = false
	mu.Unlock()
	c := b.connect(at[0])
	_, _ = c.Write([]byte("?"))
	must(t, c.CloseWrite())
	if got, err := io.ReadAll(c); string(got) != "?" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestBound has more connections than allowed: the others wait, over all ports, until one ends.
//
// Behaviour: 185.
func TestBound(t *testing.T) {
	cfg := testConfig()
	cfg.Connections = 2
	b, at, _ := running(t, cfg, func(c *net.TCPConn) { _, _ = c.Write([]byte("hello")); _, _ = io.Copy(io.Discard, c) })
	greeting := func(c *net.TCPConn) error {
		_, err := io.ReadFull(c, make([]byte, 5))
		return err
	}
	var served []*net.TCPConn
	for range 2 {
		c := b.connect(at[0])
		must(t, greeting(c))
		served = append(served, c)
	}
	waits := b.connect(at[1])
	must(t, waits.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if err := greeting(waits); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a third connection: %v, want no answer", err)
	}
	publishtest.Equal(t, "connections", len(b.room), 2)
	must(t, waits.SetReadDeadline(time.Time{}))
	must(t, served[0].Close())
	must(t, greeting(waits))
}

// events keeps events.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) Service(name types.NamespacedName, kind, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, fmt.Sprintf("%s %s %s: %s", name, kind, reason, message))
}

func (e *events) list() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.all, "\n")
}

// TestTakenPort is served once its owner gives it up. Meanwhile others are.
//
// Behaviour: 184.
func TestTakenPort(t *testing.T) {
	var got events
	cfg := testConfig()
	cfg.Events, cfg.Families = &got, [model.NumFamilies]bool{true, false}
	b, at, _ := running(t, cfg, echo)
	owner, err := health.Host{}.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	must(t, err)
	taken := netip.MustParseAddrPort(owner.Addr().String())
	b.Apply([]model.Change{put("late", tcp(taken.Port(), endpoint(t, "tcp4", "127.0.0.1:0", echo)))})
	b.await("3 attempts", func() bool { return b.Failures(model.IPv4) >= 3 })
	b.connect(at[0])
	publishtest.Equal(t, "events", got.list(), fmt.Sprintf(
		"default/late Warning FailedToStartLoopbackNodePort: node node-1 does not serve a NodePort on a loopback address: listen tcp4 %s: bind: address already in use", taken))
	publishtest.Equal(t, "listeners", b.Open(model.IPv4), 1)
	must(t, owner.Close())
	b.await("the port", func() bool { return b.Open(model.IPv4) == 2 })
	c := b.connect(taken)
	_, _ = c.Write([]byte("?"))
	must(t, c.CloseWrite())
	if answer, err := io.ReadAll(c); string(answer) != "?" || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
}
