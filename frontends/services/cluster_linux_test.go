package services

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// cluster is a node with three pods, a client outside of the cluster and the rest
// of the world, each a network namespace. Pod i is 10.244.i.2 and fd00:10:244:i::2
// and serves TCP and UDP on port 8080: it answers with its name and the client's
// address. The world answers so at every address and port, so packets missed by the
// rules end there.
type cluster struct {
	node, ext, world *nfttest.NS
	pods             [4]*nfttest.NS
}

func podAddr(f model.Family, i int) netip.Addr {
	if f == model.IPv4 {
		return netip.MustParseAddr(fmt.Sprintf("10.244.%d.2", i))
	}
	return netip.MustParseAddr(fmt.Sprintf("fd00:10:244:%d::2", i))
}

var (
	nodeAddr = [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	extAddr  = [2]netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")}
	// worldAddr has the node's own address on that side just below it.
	worldAddr = [2]netip.Addr{netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8:77::2")}
	anywhere  = [2]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
)

func newCluster(t *testing.T) *cluster {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	c := &cluster{node: newNS(t), ext: newNS(t), world: newNS(t)}
	prefix := func(a netip.Addr) netip.Prefix {
		return netip.PrefixFrom(a, map[bool]int{true: 24, false: 64}[a.Is4()])
	}
	nfttest.Veth(t, nfttest.Port{NS: c.node, Name: "ext", Addrs: []netip.Prefix{prefix(nodeAddr[0]), prefix(nodeAddr[1])}},
		nfttest.Port{NS: c.ext, Name: "eth0", Addrs: []netip.Prefix{prefix(extAddr[0]), prefix(extAddr[1])}})
	worldPort := nfttest.Port{NS: c.world, Name: "eth0"}
	nodePort := nfttest.Port{NS: c.node, Name: "world"}
	for f := range anywhere {
		worldPort.Addrs = append(worldPort.Addrs, prefix(worldAddr[f]))
		nodePort.Addrs = append(nodePort.Addrs, prefix(worldAddr[f].Prev()))
	}
	nfttest.Veth(t, nodePort, worldPort)
	for f := range anywhere {
		c.ext.Route(t, anywhere[f], nodeAddr[f])
		c.node.Route(t, anywhere[f], worldAddr[f])
		c.world.Route(t, anywhere[f], worldAddr[f].Prev())
	}
	c.world.Nft(t, `table inet world {
		chain prerouting { type nat hook prerouting priority dstnat; meta l4proto { tcp, udp } redirect to :8080; }
	}`)
	serve(t, c.world, "world")
	for i := 1; i < len(c.pods); i++ {
		ns := newNS(t)
		c.pods[i] = ns
		var gw, own []netip.Prefix
		for f := range model.NumFamilies {
			own = append(own, prefix(podAddr(f, i)))
			gw = append(gw, prefix(podAddr(f, i).Prev()))
		}
		nfttest.Veth(t, nfttest.Port{NS: c.node, Name: fmt.Sprintf("pod%d", i), Addrs: gw}, nfttest.Port{NS: ns, Name: "eth0", Addrs: own})
		for f := range anywhere {
			ns.Route(t, anywhere[f], gw[f].Addr())
		}
		serve(t, ns, fmt.Sprintf("pod%d", i))
	}
	// Besides forwarding: the kernel limits error messages, and counts redirects
	// among them; tests ask faster than that.
	c.node.Sysctl(t, map[string]string{
		"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1",
		"ipv4/icmp_ratelimit": "0", "ipv6/icmp/ratelimit": "0",
		"ipv4/conf/all/send_redirects": "0", "ipv4/conf/ext/send_redirects": "0",
	})
	return c
}

// newNS makes a namespace whose IPv6 addresses, the link-local ones too, can be
// used at once.
func newNS(t *testing.T) *nfttest.NS {
	ns := nfttest.New(t)
	ns.Sysctl(t, map[string]string{"ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0"})
	return ns
}

// serve answers with a name and the client's address, at every address of a namespace.
func serve(t *testing.T, ns *nfttest.NS, name string) { serveAt(t, ns, name, netip.IPv6Unspecified()) }

// serveAt serves at one address. A host with several needs that for UDP, as answers
// otherwise come from whichever is nearest.
func serveAt(t *testing.T, ns *nfttest.NS, name string, at netip.Addr) {
	t.Helper()
	ns.Serve(t, netip.AddrPortFrom(at, 8080), func(client netip.Addr) string { return name + " " + client.String() })
}

// ask connects from a namespace and returns which pod answered and whose
// address it saw.
func ask(ns *nfttest.NS, network, addr string) (pod string, source netip.Addr, err error) {
	return askFrom(ns, netip.Addr{}, network, addr, 2*time.Second)
}

// udpPort is the source port of the last datagram. None is used twice: conntrack has a flow
// for as long as 30 seconds, and what was decided for it with earlier rules.
var udpPort atomic.Uint32

// askFrom asks from one of the namespace's addresses, if that is valid, and waits
// so long.
func askFrom(ns *nfttest.NS, from netip.Addr, network, addr string, wait time.Duration) (pod string, source netip.Addr, err error) {
	d := net.Dialer{Timeout: wait}
	switch {
	case network == "udp":
		d.LocalAddr = &net.UDPAddr{IP: from.AsSlice(), Port: 10_000 + int(udpPort.Add(1))}
	case from.IsValid():
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	err = ns.Do(func() error {
		c, err := d.Dial(network, addr)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(wait))
		if network == "udp" {
			if _, err := c.Write([]byte("?")); err != nil {
				return err
			}
		}
		b := make([]byte, 128)
		n, err := c.Read(b)
		if err != nil {
			return err
		}
		name, from, _ := strings.Cut(string(b[:n]), " ")
		pod = name
		source, err = netip.ParseAddr(from)
		return err
	})
	return pod, source, err
}

// clusterIP returns the address of the i-th Service.
func clusterIP(f model.Family, i int) netip.Addr {
	if f == model.IPv4 {
		return netip.MustParseAddr(fmt.Sprintf("10.96.0.%d", i))
	}
	return netip.MustParseAddr(fmt.Sprintf("fd00:10:96::%d", i))
}

// stack is the real thing in a network namespace: kernel, aggregator, socket.
type stack struct {
	ns       *nfttest.NS
	dir      string
	stateDir string
	socket   string
	log      *slog.Logger
	// registerer gets the aggregator's metrics; nil discards them.
	registerer prometheus.Registerer
	// configure changes the configuration of frontends; nil leaves it.
	configure func(*Config)
}

func newStack(t testing.TB, ns *nfttest.NS) *stack {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	dir := t.TempDir()
	return &stack{ns: ns, dir: dir, stateDir: filepath.Join(dir, "state"), socket: filepath.Join(dir, "weft.sock"),
		log: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))}
}

// testWriter is a log that is shown with the test's failure.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(string(b[:len(b)-1]))
	return len(b), nil
}

// aggregator runs an aggregator until stop is called, at the latest at the end
// of the test.
func (s *stack) aggregator(t testing.TB) (agg *aggregator.Aggregator, stop func()) {
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: s.ns.FD()})
	must(t, err)
	// Flows are removed by one, and listed by the other.
	var flows, table *conntrack.Conn
	for _, c := range []**conntrack.Conn{&flows, &table} {
		must(t, s.ns.Do(func() (err error) { *c, err = conntrack.Open(); return err }))
	}
	agg, err = aggregator.New(aggregator.Config{Kernel: conn, Flows: flows, StateDir: s.stateDir, Rate: rate.Inf, Registerer: s.registerer, Logger: s.log.With("part", "aggregator")})
	must(t, err)
	srv, err := server.Listen(server.Config{Socket: s.socket, Aggregator: agg, Flows: table, Logger: s.log})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := agg.Run(ctx); err != nil {
			t.Errorf("run aggregator: %v", err)
		}
		_, _, _ = conn.Close(), flows.Close(), table.Close()
	})
	wg.Go(func() {
		if err := srv.Serve(ctx); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return agg, stop
}

// frontend runs a frontend until stop is called, at the latest at the end of
// the test.
func (s *stack) frontend(t testing.TB, src source.Source, nodePorts ...netip.Prefix) (f *Frontend, stop func()) {
	t.Helper()
	cfg := Config{
		Source: src, NodeName: "node-1", Socket: s.socket, MinSyncPeriod: -1, NodePortAddresses: model.NodePorts(nodePorts...),
		Detect: render.Detect{CIDRs: podCIDRs}, Logger: s.log.With("part", "frontend"),
	}
	if s.configure != nil {
		s.configure(&cfg)
	}
	f, err := New(cfg)
	must(t, err)
	return f, runUntil(t, f)
}

// runUntil runs a frontend until stop is called, at the latest at the end of the test.
func runUntil(t testing.TB, f *Frontend) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- runWithSource(ctx, f) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run frontend: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
