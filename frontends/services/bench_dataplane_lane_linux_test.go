package services

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// lane is a client, a node and a backend that answers at the addresses of all
// endpoints, each a network namespace:
//
//	client 10.244.1.2 -- node -- backend 10.128.0.0/11
//
// The client is a pod, and has an address of no pod, outside, too.
//
// One thread plays both client and server. Veth hands packets on within the system
// call that sends them, so no wait for the scheduler is in what is measured.
type lane struct {
	client, node, backend *nfttest.NS
	// onBackend and onNode are listening sockets, at port 8080.
	onBackend, onNode int
}

// laneEndpoints is how many endpoints each Service of a lane has.
const laneEndpoints = 10

var outside = netip.MustParseAddr("192.0.2.10")

// laneEndpoint is the j-th endpoint of the i-th Service.
func laneEndpoint(i, j int) netip.AddrPort {
	n := i*laneEndpoints + j
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(128 + n/62500), byte(n / 250 % 250), byte(n%250 + 1)}), 8080)
}

// laneService is where the i-th Service answers.
func laneService(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(i / 250), byte(i%250 + 1)}), 80)
}

// newLane joins the namespaces. The node forwards, and has no rules.
func newLane(b *testing.B) *lane {
	b.Helper()
	nfttest.Require(b, nfttest.Namespaces, nfttest.NFT)
	l := &lane{client: nfttest.New(b), node: nfttest.New(b), backend: nfttest.New(b)}
	for i, ns := range []*nfttest.NS{l.client, l.backend} {
		end := func(host byte) []netip.Prefix {
			return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i + 1), host}), 24)}
		}
		nfttest.Veth(b, nfttest.Port{NS: l.node, Name: fmt.Sprintf("pod%d", i), Addrs: end(1)}, nfttest.Port{NS: ns, Name: "eth0", Addrs: end(2)})
		ns.Route(b, anywhere[model.IPv4], end(1)[0].Addr())
		// What TCP remembers of its peers would favour lanes with few of them.
		ns.Run(b, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save")
	}
	l.client.Run(b, "ip", "addr", "add", outside.String(), "dev", "lo")
	l.node.Route(b, netip.PrefixFrom(outside, outside.BitLen()), netip.MustParseAddr("10.244.1.2"))
	const endpoints = "10.128.0.0/11"
	l.node.Route(b, netip.MustParsePrefix(endpoints), netip.MustParseAddr("10.244.2.2"))
	l.backend.Run(b, "ip", "route", "add", "local", endpoints, "dev", "lo")
	l.node.Run(b, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	listenAt := func(ns *nfttest.NS) (fd int) {
		if err := ns.Do(func() (err error) { fd, err = listen(); return err }); err != nil {
			b.Fatalf("listen: %v", err)
		}
		b.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	l.onBackend, l.onNode = listenAt(l.backend), listenAt(l.node)
	return l
}

// planeLane is a lane whose node has what weft renders and commits for a model.
func planeLane(b *testing.B, changes model.Changes, counters render.Counters) (*lane, *stack, *plane) {
	b.Helper()
	l := newLane(b)
	s := newStack(b, l.node)
	// What a benchmark logs is printed between its results.
	s.log = slog.New(slog.DiscardHandler)
	s.aggregator(b)
	p := newPlane(b, s, func(c *render.Config) { c.Counters = counters })
	p.publish(b, changes)
	return l, s, p
}

// serviceLane is planeLane with so many Services.
func serviceLane(b *testing.B, services int) *lane {
	b.Helper()
	l, _, _ := planeLane(b, laneModel(services), render.CountServices)
	return l
}

// textLane is a lane whose node has rules as nft(8) reads them.
func textLane(b *testing.B, rules string) *lane {
	b.Helper()
	l := newLane(b)
	l.node.Nft(b, rules)
	return l
}

// bareNAT is the least that a proxy needs: conntrack, and one rule that translates.
func bareNAT() string {
	return "table ip bare {\n\tchain prerouting {\n\t\ttype nat hook prerouting priority dstnat;\n" +
		"\t\tip daddr 10.96.0.0/16 tcp dport 80 dnat to " + laneEndpoint(0, 0).String() + "\n\t}\n}\n"
}

// laneModel has Services with one TCP port each.
func laneModel(services int) model.Changes {
	out := model.Changes{Node: thisNode(), ServiceCIDRs: serviceRanges()}
	for i := range services {
		eps := make([]model.Endpoint, laneEndpoints)
		for j := range eps {
			eps[j].Addr = laneEndpoint(i, j)
		}
		s := laneServiceOf(i, eps)
		out.Services = append(out.Services, model.Change{Name: s.Name, New: s})
	}
	return out
}

// laneServiceOf is the i-th Service with these endpoints.
func laneServiceOf(i int, eps []model.Endpoint) *model.Service {
	s := &model.Service{Name: model.Key{Namespace: "default", Name: fmt.Sprintf("s%05d", i)}}
	s.ClusterIPs[model.IPv4] = laneService(i).Addr()
	p := model.Port{Name: "http", Protocol: model.TCP, Number: 80, ClusterIPs: s.ClusterIPs}
	p.Backends[model.IPv4].Cluster = model.MakeEndpoints(eps...)
	s.Ports = []model.Port{p}
	return s
}

// listen opens a socket in the thread's namespace. What waits for a packet that was
// lost ends.
func listen() (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return 0, err
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: 8080}); err != nil {
		return 0, err
	}
	return fd, unix.Listen(fd, 64)
}

// path is where a lane's client goes.
type path struct {
	*lane
	// to is dialed next, at the socket.
	to     func(turn int) netip.AddrPort
	socket int
	turn   int
	// from is the client's address, if it matters.
	from netip.Addr
}

// toServices dials the first n Services, in an order that is of no use to the
// processor's caches.
func (l *lane) toServices(n int) *path {
	return &path{lane: l, socket: l.onBackend, to: func(turn int) netip.AddrPort { return laneService(turn * 7919 % n) }}
}

// toEndpoints dials one endpoint of each of the first n Services.
func (l *lane) toEndpoints(n int) *path {
	return &path{lane: l, socket: l.onBackend, to: func(turn int) netip.AddrPort { return laneEndpoint(turn*7919%n, 0) }}
}

// fromOutside dials Services from the address outside.
func (l *lane) fromOutside(n int) *path {
	p := l.toServices(n)
	p.from = outside
	return p
}

// toNode dials the node itself.
func (l *lane) toNode() *path {
	own := netip.MustParseAddrPort("10.244.1.1:8080")
	return &path{lane: l, socket: l.onNode, to: func(int) netip.AddrPort { return own }}
}

// pair is both ends of a TCP connection.
type pair struct{ client, server int }

// dial connects from the thread's namespace, and returns how long the answer to the
// first packet took.
func (p *path) dial() (c pair, answer time.Duration, err error) {
	to := p.to(p.turn)
	p.turn++
	if c.client, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return c, 0, err
	}
	// Closing resets: nothing is left to wait for late packets.
	if err = unix.SetsockoptLinger(c.client, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return c, 0, err
	}
	if p.from.IsValid() {
		// The port is left to connect, as it is without an address.
		if err = unix.SetsockoptInt(c.client, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); err != nil {
			return c, 0, err
		}
		if err = unix.Bind(c.client, &unix.SockaddrInet4{Addr: p.from.As4()}); err != nil {
			return c, 0, fmt.Errorf("bind to %s: %w", p.from, err)
		}
	}
	began := time.Now()
	if err = unix.Connect(c.client, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return c, 0, fmt.Errorf("connect to %s: %w", to, err)
	}
	answer = time.Since(began)
	if c.server, _, err = unix.Accept4(p.socket, unix.SOCK_CLOEXEC); err != nil {
		return c, 0, fmt.Errorf("accept connection to %s: %w", to, err)
	}
	return c, answer, nil
}

func (c pair) close() { _, _ = unix.Close(c.client), unix.Close(c.server) }

// forget empties the node's table of flows: closed ones stay there for seconds.
func (l *lane) forget() error {
	return l.node.Do(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer h.Close()
		return h.ConntrackTableFlush(netlink.ConntrackTable)
	})
}
