package eval_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// side are the addresses of one family: those of the node, and the network of the clients. The Services
// have no addresses.
type side struct {
	clientSide, serverSide netip.Addr
	clients                netip.Prefix
}

// sides are those of IPv4 and of IPv6.
var sides = map[bool]side{
	true:  {netip.MustParseAddr("10.1.0.254"), netip.MustParseAddr("10.2.0.1"), netip.MustParsePrefix("10.1.0.0/24")},
	false: {netip.MustParseAddr("fd01::fe"), netip.MustParseAddr("fd02::1"), netip.MustParsePrefix("fd01::/64")},
}

// sideOf returns the side of an address.
func sideOf(a netip.Addr) side { return sides[a.Is4()] }

// lab is a client, a node that forwards, and a server.
type lab struct {
	client, node, server *nfttest.NS
	in, out              eval.Interface
	// raw are raw sockets, packets packet sockets, of IPv4 and IPv6.
	raw, packets map[*nfttest.NS]map[bool]int
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
	for _, ns := range []*nfttest.NS{l.client, l.node, l.server} {
		// Addresses can be used at once.
		nfttest.NoError(t, ns.Do(func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0) }))
	}
	nfttest.Veth(t, nfttest.Port{NS: l.client, Name: "up", Addrs: prefixes("10.1.0.1/24", "fd01::1/64")}, nfttest.Port{NS: l.node, Name: "c0", Addrs: prefixes("10.1.0.254/24", "fd01::fe/64")})
	nfttest.Veth(t, nfttest.Port{NS: l.server, Name: "up", Addrs: prefixes("10.2.0.2/24", "10.2.0.3/24", "fd02::2/64", "fd02::3/64")}, nfttest.Port{NS: l.node, Name: "s0", Addrs: prefixes("10.2.0.1/24", "fd02::1/64")})
	l.client.Route(t, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("10.1.0.254"))
	l.client.Route(t, netip.MustParsePrefix("::/0"), netip.MustParseAddr("fd01::fe"))
	l.server.Route(t, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("10.2.0.1"))
	l.server.Route(t, netip.MustParsePrefix("::/0"), netip.MustParseAddr("fd02::1"))
	l.node.Route(t, netip.MustParsePrefix("10.96.0.0/16"), netip.MustParseAddr("10.2.0.2"))
	l.node.Route(t, netip.MustParsePrefix("fd96::/64"), netip.MustParseAddr("fd02::2"))
	l.neighbours(t)
	// Neither end answers by itself: the packets are those of the test.
	for _, ns := range []*nfttest.NS{l.client, l.server} {
		ns.Nft(t, "table inet t { chain c { type filter hook prerouting priority raw; drop; }; }")
	}
	nfttest.NoError(t, l.node.Do(func() error {
		for name, i := range map[string]*eval.Interface{"c0": &l.in, "s0": &l.out} {
			link, err := net.InterfaceByName(name)
			if err != nil {
				return err
			}
			*i = eval.Interface{Index: uint32(link.Index), Name: name}
		}
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0); err != nil {
			return err
		}
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	}))
	l.raw, l.packets = make(map[*nfttest.NS]map[bool]int), make(map[*nfttest.NS]map[bool]int)
	for _, ns := range []*nfttest.NS{l.client, l.node, l.server} {
		l.raw[ns] = map[bool]int{
			true:  socket(t, ns, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW),
			false: socket(t, ns, unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW),
		}
		l.packets[ns] = make(map[bool]int)
		for is4, protocol := range map[bool]uint16{true: unix.ETH_P_IP, false: unix.ETH_P_IPV6} {
			// The protocol is in network byte order.
			fd := socket(t, ns, unix.AF_PACKET, unix.SOCK_DGRAM, int(protocol<<8|protocol>>8))
			nfttest.NoError(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60}))
			l.packets[ns][is4] = fd
		}
	}
	return l
}

// neighbours tells the kernel the hardware addresses of addresses that no interface has, and those of IPv6:
// random rules may drop the packets that ask for them.
func (l *lab) neighbours(t *testing.T) {
	t.Helper()
	mac := func(ns *nfttest.NS, device string) string {
		fields := strings.Fields(ns.Run(t, "ip", "-o", "link", "show", "dev", device))
		return fields[slices.Index(fields, "link/ether")+1]
	}
	add := func(ns *nfttest.NS, device, addr, mac string) {
		ns.Run(t, "ip", "neigh", "replace", addr, "lladdr", mac, "dev", device, "nud", "permanent")
	}
	add(l.client, "up", "fd01::fe", mac(l.node, "c0"))
	// Rules translate sources to .9.
	for _, addr := range []string{"fd02::1", "fd02::9", "10.2.0.9"} {
		add(l.server, "up", addr, mac(l.node, "s0"))
	}
	for _, addr := range []string{"fd02::2", "fd02::3"} {
		add(l.node, "s0", addr, mac(l.server, "up"))
	}
	for i := 1; i <= 5; i++ {
		for _, format := range []string{"fd01::%d", "10.1.0.%d"} {
			add(l.node, "c0", fmt.Sprintf(format, i), mac(l.client, "up"))
		}
	}
}

// socket opens a socket in a namespace.
func socket(t *testing.T, ns *nfttest.NS, domain, typ, protocol int) (fd int) {
	t.Helper()
	nfttest.NoError(t, ns.Do(func() (err error) {
		fd, err = unix.Socket(domain, typ|unix.SOCK_CLOEXEC, protocol)
		return err
	}))
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// host knows the node's routes and addresses.
func (l *lab) host() eval.Host {
	local := func(a netip.Addr) bool {
		return a.IsLoopback() || a == sideOf(a).clientSide || a == sideOf(a).serverSide
	}
	return eval.Host{
		Route: l.route,
		AddressType: func(a netip.Addr) (uint32, bool) {
			if local(a) {
				return unix.RTN_LOCAL, true
			}
			return unix.RTN_UNICAST, true
		},
		Address: func(i eval.Interface, p *eval.Packet) (netip.Addr, bool) {
			switch {
			case i != l.in && i != l.out && p.Destination().Is6():
				// ipv6_dev_get_saddr prefers the destination itself for lo.
				return p.Destination(), true
			case i != l.out:
				// lo has no address of universe scope: inet_select_addr takes that of the next device.
				return sideOf(p.Source()).clientSide, true
			default:
				return sideOf(p.Source()).serverSide, true
			}
		},
	}
}

// route is a routing decision of the node.
func (l *lab) route(p *eval.Packet) (eval.Route, bool) {
	switch to := p.Destination(); {
	case to.IsLoopback() || to == sideOf(to).clientSide || to == sideOf(to).serverSide:
		return eval.Route{Local: true}, true
	case sideOf(to).clients.Contains(to):
		return eval.Route{Out: l.in}, true
	default:
		return eval.Route{Out: l.out}, true
	}
}

// observation is the fate of a packet in the kernel.
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
// From is where it begins, and to where it ends if it does not end on the node.
func (l *lab) send(t *testing.T, data []byte, from, to *nfttest.NS, events <-chan kernel.TraceEvent) (got observation) {
	t.Helper()
	var addr unix.Sockaddr = &unix.SockaddrInet4{Addr: [4]byte(data[16:20])}
	is4, addresses := data[0]>>4 == 4, [2]int{12, 20}
	if !is4 {
		addr, addresses = &unix.SockaddrInet6{Addr: [16]byte(data[24:40])}, [2]int{8, 40}
	}
	// The node itself hears by EPERM that its packet is dropped.
	if err := unix.Sendto(l.raw[from][is4], data, 0, addr); err != nil && !(from == l.node && errors.Is(err, unix.EPERM)) {
		t.Fatal(err)
	}
	out := uint32(0)
	for {
		e := nextEvent(t, events)
		// The kernel names the interfaces with the first event of a packet in a base chain.
		out = cmp.Or(e.Out, out)
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
		case e.Chain == "last_postrouting" && (e.Type == kernel.TraceRule || out == loopbackIndex):
			// It is not the end, or comes back through lo.
		case e.Chain == "last_postrouting":
			got.data = l.receive(t, l.packets[to][is4], number(data))
			got.translated = !bytes.Equal(data[addresses[0]:addresses[1]], got.data[addresses[0]:addresses[1]])
			return got
		}
	}
}

const (
	// loopbackIndex is the index of lo.
	loopbackIndex = 1
	// icmpUnreachable is the type of an ICMP error, which no test sends.
	icmpUnreachable = 3
)

// number returns the number of a packet: the identification of IPv4, and the last bits of the flow label of IPv6.
func number(data []byte) uint16 {
	if data[0]>>4 == 4 {
		return binary.BigEndian.Uint16(data[4:])
	}
	return binary.BigEndian.Uint16(data[2:])
}

// receive returns the packet of a number. The node's own errors, about earlier packets to hosts that
// do not answer, have numbers of the kernel's choice.
func (l *lab) receive(t *testing.T, socket int, want uint16) []byte {
	t.Helper()
	buf := make([]byte, 2048)
	for {
		n, _, err := unix.Recvfrom(socket, buf, 0)
		if err != nil {
			t.Fatalf("packet %d is not received: %v", want, err)
		}
		unreachable := n > 20 && buf[0]>>4 == 4 && buf[9] == unix.IPPROTO_ICMP && buf[20] == icmpUnreachable
		if n >= 20 && number(buf) == want && !unreachable {
			return buf[:n]
		}
	}
}
