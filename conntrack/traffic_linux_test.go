package conntrack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ti-mo/conntrack"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// node is a namespace in which clients, destinations and backends are
// addresses of loopback, and nft rules translate between them.
type node struct {
	ns *nfttest.NS
	// list reads the table, independently of the code under test.
	list *conntrack.Conn
	conn *Conn
}

const (
	clientAddr  = "192.0.2.1"
	clientAddr6 = "2001:db8::1"
)

// rules send even source ports to backend .1 and odd ones to .2, and leave
// 10.96.0.12 untranslated. Port 30053 is a NodePort.
const rules = `
table ip t {
	chain out {
		type nat hook output priority -100
		ip daddr 10.96.0.10 udp dport 53 udp sport & 1 == 0 dnat to 10.1.0.1:5353
		ip daddr 10.96.0.10 udp dport 53 dnat to 10.1.0.2:5353
		ip daddr 10.96.0.11 udp dport 53 dnat to 10.1.0.1:5353
		ip daddr 10.96.0.10 tcp dport 53 dnat to 10.1.0.1:5353
		ip daddr { 192.0.2.1, 198.51.100.1 } udp dport 30053 dnat to 10.1.0.1:5353
	}
}
table ip zoned {
	chain out {
		type filter hook output priority raw
		ip daddr 10.96.0.10 udp sport 4700-4709 ct zone set 7
		ip saddr 10.1.0.1 udp dport 4700-4709 ct zone set 7
	}
	chain pre {
		type filter hook prerouting priority raw
		ip daddr 10.1.0.1 udp sport 4700-4709 ct zone set 7
		ip saddr 10.96.0.10 udp dport 4700-4709 ct zone set 7
		ip saddr 10.1.0.1 udp dport 4700-4709 ct zone set 7
	}
}
table ip6 t {
	chain out {
		type nat hook output priority -100
		ip6 daddr fd00:96::10 udp dport 53 dnat to [fd00:1::1]:5353
	}
}`

// links are the addresses and the destinations of loopback.
const links = `
addr add 192.0.2.1/32 dev lo
addr add 10.1.0.1/32 dev lo
addr add 10.1.0.2/32 dev lo
addr add 2001:db8::1/128 dev lo nodad
addr add fd00:1::1/128 dev lo nodad
route add 10.96.0.0/16 dev lo
route add 198.51.100.0/24 dev lo
route add fd00:96::/112 dev lo
`

func newNode(t testing.TB) *node {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	n := &node{ns: nfttest.New(t)}
	n.ns.Nft(t, rules)
	if _, err := n.ns.Output(links, "ip", "-batch", "-"); err != nil {
		t.Fatal(err)
	}
	n.do(t, func() (err error) {
		if n.list, err = conntrack.Dial(nil); err != nil {
			return err
		}
		n.conn, err = Open()
		return err
	})
	t.Cleanup(func() {
		if err := errors.Join(n.list.Close(), n.conn.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

func (n *node) do(t testing.TB, f func() error) {
	t.Helper()
	must(t, n.ns.Do(f))
}

// insist sends a packet until one comes back: the kernel makes an address of IPv6 reachable in its own time.
func insist(conn net.Conn, packet []byte) (err error) {
	for range 100 {
		_, err = conn.Write(packet)
		if err == nil {
			err = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		}
		if err == nil {
			if _, err = conn.Read(make([]byte, 64)); err == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("ask %s: %w", conn.RemoteAddr(), err)
}

func dialUDP(from, to string) (*net.UDPConn, error) {
	return net.DialUDP("udp", net.UDPAddrFromAddrPort(ap(from)), net.UDPAddrFromAddrPort(ap(to)))
}

// ask sends packets from a source to a destination until one comes back.
func (n *node) ask(t testing.TB, from, to string) {
	t.Helper()
	n.do(t, func() error {
		conn, err := dialUDP(from, to)
		if err != nil {
			return err
		}
		defer conn.Close()
		return insist(conn, []byte("?"))
	})
}

// shout sends one packet without an answer.
func (n *node) shout(t testing.TB, from, to string) {
	t.Helper()
	n.do(t, func() error {
		conn, err := dialUDP(from, to)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("!"))
		return err
	})
}

// tcpConn is an established connection that can be asked whether it lives.
type tcpConn struct {
	net.Conn
	in *bufio.Reader
}

func (n *node) dialTCP(t testing.TB, to string) *tcpConn {
	t.Helper()
	c := &tcpConn{}
	n.do(t, func() (err error) {
		c.Conn, err = net.DialTimeout("tcp", to, 5*time.Second)
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	c.in = bufio.NewReader(c)
	c.check(t)
	return c
}

func (c *tcpConn) check(t testing.TB) {
	t.Helper()
	must(t, c.SetDeadline(time.Now().Add(3*time.Minute)))
	if _, err := io.WriteString(c, "alive\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := c.in.ReadString('\n'); err != nil || line != "alive\n" {
		t.Fatalf("connection answers %q, %v", line, err)
	}
}

// inject creates the entry of flow number i to a destination, translated to a backend.
func (n *node) inject(proto uint8, i int, to, backend netip.AddrPort) error {
	src := netip.AddrFrom4([4]byte{192, 0, 3, byte(i >> 14)})
	f := conntrack.NewFlow(proto, conntrack.StatusConfirmed|conntrack.StatusAssured|conntrack.StatusDstNATDone,
		src, to.Addr(), uint16(1024+i&0x3fff), to.Port(), 3600, 0) //nolint:gosec // a port
	f.TupleReply.IP.SourceAddress = backend.Addr()
	f.TupleReply.Proto.SourcePort = backend.Port()
	if proto == 6 {
		f.ProtoInfo.TCP = &conntrack.ProtoInfoTCP{State: 3}
	}
	return n.list.Create(f)
}

// flows returns the table in words, sorted: "udp src -> dst = backend".
func (n *node) flows(t testing.TB) []string {
	t.Helper()
	list, err := n.list.Dump(nil)
	must(t, err)
	var out []string
	for _, f := range list {
		name := map[uint8]string{6: "tcp", 17: "udp"}[f.TupleOrig.Proto.Protocol]
		if name == "" {
			continue
		}
		src := netip.AddrPortFrom(f.TupleOrig.IP.SourceAddress, f.TupleOrig.Proto.SourcePort)
		dst := netip.AddrPortFrom(f.TupleOrig.IP.DestinationAddress, f.TupleOrig.Proto.DestinationPort)
		reply := netip.AddrPortFrom(f.TupleReply.IP.SourceAddress, f.TupleReply.Proto.SourcePort)
		if name == "tcp" {
			// The kernel picks the port.
			src = netip.AddrPortFrom(src.Addr(), 0)
		}
		text := fmt.Sprintf("%s %s -> %s = %s", name, src, dst, reply)
		if f.Zone != 0 {
			text += fmt.Sprintf(" zone %d", f.Zone)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}
