package eval_test

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/nfttest"
)

// The node's addresses, and the network of the server. The Services have no addresses.
var (
	nodeClientSide = netip.MustParseAddr("10.1.0.254")
	nodeServerSide = netip.MustParseAddr("10.2.0.1")
	clients        = netip.MustParsePrefix("10.1.0.0/24")
)

// lab is a client, a node that forwards, and a server.
type lab struct {
	client, node, server *nfttest.NS
	in, out              eval.Interface
	// sender is a raw socket of the client, receiver a packet socket of the server.
	sender, receiver int
}

// newLab makes the namespaces and sockets.
func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{client: nfttest.New(t), node: nfttest.New(t), server: nfttest.New(t)}
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, text := range texts {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	nfttest.Veth(t, nfttest.Port{NS: l.client, Name: "up", Addrs: prefixes("10.1.0.1/24")}, nfttest.Port{NS: l.node, Name: "c0", Addrs: prefixes("10.1.0.254/24")})
	nfttest.Veth(t, nfttest.Port{NS: l.server, Name: "up", Addrs: prefixes("10.2.0.2/24", "10.2.0.3/24")}, nfttest.Port{NS: l.node, Name: "s0", Addrs: prefixes("10.2.0.1/24")})
	l.client.Route(t, netip.MustParsePrefix("0.0.0.0/0"), nodeClientSide)
	l.node.Route(t, netip.MustParsePrefix("10.96.0.0/16"), netip.MustParseAddr("10.2.0.2"))
	// The server does not answer: each packet is the first of its connection.
	l.server.Nft(t, "table ip t { chain c { type filter hook prerouting priority raw; drop; }; }")
	err := l.node.Do(func() error {
		for name, i := range map[string]*eval.Interface{"c0": &l.in, "s0": &l.out} {
			link, err := net.InterfaceByName(name)
			if err != nil {
				return err
			}
			*i = eval.Interface{Index: uint32(link.Index), Name: name, Type: unix.ARPHRD_ETHER}
		}
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	l.sender = socket(t, l.client, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	const ethPIP = unix.ETH_P_IP<<8 | unix.ETH_P_IP>>8 // in network byte order
	l.receiver = socket(t, l.server, unix.AF_PACKET, unix.SOCK_DGRAM, ethPIP&0xffff)
	if err := unix.SetsockoptTimeval(l.receiver, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60}); err != nil {
		t.Fatal(err)
	}
	return l
}

// socket opens a socket in a namespace.
func socket(t *testing.T, ns *nfttest.NS, domain, typ, protocol int) (fd int) {
	t.Helper()
	err := ns.Do(func() (err error) {
		fd, err = unix.Socket(domain, typ|unix.SOCK_CLOEXEC, protocol)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// host knows the node's routes and addresses.
func (l *lab) host() eval.Host {
	local := func(a netip.Addr) bool { return a == nodeClientSide || a == nodeServerSide }
	return eval.Host{
		Route: l.route,
		AddressType: func(a netip.Addr) (uint32, bool) {
			if local(a) {
				return unix.RTN_LOCAL, true
			}
			return unix.RTN_UNICAST, true
		},
		Address: func(i eval.Interface, _ *eval.Packet) (netip.Addr, bool) {
			if i == l.in {
				return nodeClientSide, true
			}
			return nodeServerSide, true
		},
	}
}

// route is a routing decision of the node.
func (l *lab) route(p *eval.Packet) (eval.Route, bool) {
	switch to := p.Destination(); {
	case to == nodeClientSide || to == nodeServerSide:
		return eval.Route{Local: true}, true
	case clients.Contains(to):
		return eval.Route{Out: l.in}, true
	default:
		return eval.Route{Out: l.out}, true
	}
}

// observation is what the kernel did with a packet.
type observation struct {
	steps   []string
	dropped bool
	// data is the packet that the server received, nil if the packet was for the node.
	data []byte
	// translated is true if an address of data differs from that of the packet.
	translated bool
}

// String prints the observation for an error.
func (o observation) String() string {
	return fmt.Sprintf("dropped %v, received %x\n  %s", o.dropped, o.data, strings.Join(o.steps, "\n  "))
}

// send sends a packet and observes it until its end.
func (l *lab) send(t *testing.T, data []byte, events <-chan kernel.TraceEvent) (got observation) {
	t.Helper()
	to := &unix.SockaddrInet4{Addr: [4]byte(data[16:20])}
	if err := unix.Sendto(l.sender, data, 0, to); err != nil {
		t.Fatal(err)
	}
	for {
		e := nextEvent(t, events)
		verdict := e.Verdict
		switch e.Type {
		case kernel.TracePolicy:
			verdict.Code, verdict.Chain = e.Policy, ""
		case kernel.TraceRule:
		default:
			continue
		}
		got.steps = append(got.steps, fmt.Sprintf("%s %s %d %s", e.Table, e.Chain, e.Rule, verdict))
		switch {
		case verdict.Code == datatype.VerdictDrop:
			got.dropped = true
			return got
		case e.Chain == "last_input":
			return got
		case e.Chain == "last_postrouting":
			got.data = l.receive(t, data[4:6])
			got.translated = !bytes.Equal(data[12:20], got.data[12:20])
			return got
		}
	}
}

// receive returns the packet of an IPv4 identification.
func (l *lab) receive(t *testing.T, id []byte) []byte {
	t.Helper()
	buf := make([]byte, 2048)
	for {
		n, _, err := unix.Recvfrom(l.receiver, buf, 0)
		if err != nil {
			t.Fatalf("the server does not receive the packet: %v", err)
		}
		if n >= 20 && bytes.Equal(buf[4:6], id) {
			return buf[:n]
		}
	}
}
