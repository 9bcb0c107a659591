package render

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// lab is a node with three pods and a host outside of the cluster, each a network
// namespace. Each answers TCP and UDP on port 8080. The node has Services: translations of
// TCP and UDP port 80 of serviceAddr(f, i) to pod i.
type lab struct {
	*fixture
	node, ext *nfttest.NS
	pods      [4]*nfttest.NS
}

const pods = 3

func labAddr(f, i int) netip.Addr {
	return netip.MustParseAddr([]string{fmt.Sprintf("10.244.%d.2", i), fmt.Sprintf("fd00:10:244:%d::2", i)}[f])
}

func serviceAddr(f, i int) netip.Addr {
	return netip.MustParseAddr([]string{fmt.Sprintf("10.96.0.%d", i), fmt.Sprintf("fd00:10:96::%d", i)}[f])
}

var (
	nodeAddrs = [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	extAddrs  = [2]netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")}
	defaults  = [2]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
)

func newLab(t testing.TB, edit ...func(*Config)) *lab {
	t.Helper()
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	l := &lab{fixture: newFixture(t, edit...), node: labNS(t), ext: labNS(t)}
	l.join("ext", l.ext, nodeAddrs, extAddrs)
	for i := 1; i <= pods; i++ {
		l.pods[i] = labNS(t)
		var own, gateway [2]netip.Addr
		for f := range own {
			own[f] = labAddr(f, i)
			gateway[f] = own[f].Prev()
		}
		l.join(fmt.Sprintf("pod%d", i), l.pods[i], gateway, own)
	}
	sysctl(t, l.node, map[string]string{
		"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1", "ipv4/icmp_ratelimit": "0", "ipv6/icmp/ratelimit": "0",
		"ipv4/conf/all/send_redirects": "0", "ipv4/conf/ext/send_redirects": "0",
	})
	// A host with several addresses answers UDP from the nearest one.
	serve(t, l.node, nodeAddrs[:]...)
	var nat strings.Builder
	for f, family := range []string{"ip", "ip6"} {
		fmt.Fprintf(&nat, "table %s nat {\n chain pre {\n type nat hook prerouting priority dstnat;\n", family)
		for i := 1; i <= pods; i++ {
			to := netip.AddrPortFrom(labAddr(f, i), 8080)
			for _, p := range []string{"tcp", "udp"} {
				fmt.Fprintf(&nat, "%s daddr %s %s dport 80 dnat to %s\n", family, serviceAddr(f, i), p, to)
			}
		}
		fmt.Fprintf(&nat, "}\n chain post {\n type nat hook postrouting priority srcnat;\n")
		for i := 1; i <= pods; i++ {
			fmt.Fprintf(&nat, "%s saddr %s %s daddr %s masquerade\n", family, labAddr(f, i), family, labAddr(f, i))
		}
		nat.WriteString("}\n}\n")
	}
	l.node.Nft(t, nat.String())
	l.warmUp()
	return l
}

// warmUp makes everybody find the neighbours: a new interface may answer after a second
// only.
func (l *lab) warmUp() {
	var wg sync.WaitGroup
	for _, ns := range append(l.pods[1:], l.node) {
		for f := range extAddrs {
			for _, to := range []netip.Addr{extAddrs[f], nodeAddrs[f]} {
				wg.Go(func() {
					for range 20 {
						if c, err := dial(ns, "tcp", netip.Addr{}, netip.AddrPortFrom(to, 8080), 10*time.Second); err == nil {
							c.Close()
							return
						}
					}
					l.t.Errorf("%s is not reachable", to)
				})
			}
		}
	}
	wg.Wait()
}

// join connects a namespace to the node, with a server and a route to everything.
func (l *lab) join(name string, ns *nfttest.NS, gateway, own [2]netip.Addr) {
	at := func(all [2]netip.Addr) (out []netip.Prefix) {
		return []netip.Prefix{netip.PrefixFrom(all[0], 24), netip.PrefixFrom(all[1], 64)}
	}
	nfttest.Veth(l.t, nfttest.Port{NS: l.node, Name: name, Addrs: at(gateway)}, nfttest.Port{NS: ns, Name: "eth0", Addrs: at(own)})
	for f := range defaults {
		ns.Route(l.t, defaults[f], gateway[f])
	}
	serve(l.t, ns)
}

// labNS makes a namespace whose IPv6 addresses can be used at once.
func labNS(t testing.TB) *nfttest.NS {
	ns := nfttest.New(t)
	sysctl(t, ns, map[string]string{"ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0"})
	return ns
}

func sysctl(t testing.TB, ns *nfttest.NS, values map[string]string) {
	t.Helper()
	for path, value := range values {
		must(t, ns.Do(func() error { return os.WriteFile("/proc/sys/net/"+path, []byte(value), 0) }))
	}
}

// serve answers TCP and UDP at port 8080 of some addresses, or of all, with what it gets.
func serve(t testing.TB, ns *nfttest.NS, at ...netip.Addr) {
	t.Helper()
	if len(at) == 0 {
		at = []netip.Addr{netip.IPv6Unspecified()}
	}
	for _, a := range at {
		ns.Echo(t, netip.AddrPortFrom(a, 8080).String())
	}
}

// apply makes the ruleset that the updates have led to the kernel's.
func (l *lab) apply() {
	l.t.Helper()
	l.finish()
	l.compare()
	l.node.Nft(l.t, l.rules.String())
}

// patience is how long a probe waits for an answer that must not come.
const patience = 250 * time.Millisecond

// wait returns how long a probe waits: a busy machine may take long to answer.
func wait(wanted bool) time.Duration {
	if wanted {
		return 3 * time.Minute
	}
	return patience
}

// link is an open connection.
type link struct{ net.Conn }

// dial opens a connection. UDP is one after the first answer. The zero source leaves the choice to the kernel.
func dial(ns *nfttest.NS, network string, source netip.Addr, to netip.AddrPort, limit time.Duration) (*link, error) {
	d := net.Dialer{Timeout: limit}
	switch from := netip.AddrPortFrom(source, 0); {
	case !source.IsValid():
	case network == "udp":
		d.LocalAddr = net.UDPAddrFromAddrPort(from)
	default:
		d.LocalAddr = net.TCPAddrFromAddrPort(from)
	}
	out := &link{}
	if err := ns.Do(func() (err error) { out.Conn, err = d.Dial(network, to.String()); return err }); err != nil {
		return nil, err
	}
	if err := out.echo(limit); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// echo sends a byte and waits for it.
func (l *link) echo(limit time.Duration) error {
	b := []byte{1}
	_ = l.SetDeadline(time.Now().Add(limit))
	if _, err := l.Write(b); err != nil {
		return err
	}
	_, err := l.Read(b)
	return err
}

// probe is a connection to try.
type probe struct {
	name    string
	from    *nfttest.NS
	network string
	source  netip.Addr
	to      netip.AddrPort
	// want is true if it must be answered.
	want bool
}

// run tries all at once.
func (l *lab) run(probes []probe) {
	l.t.Helper()
	var wg sync.WaitGroup
	for _, p := range probes {
		wg.Go(func() {
			c, err := dial(p.from, p.network, p.source, p.to, wait(p.want))
			if err == nil {
				c.Close()
			}
			if (err == nil) != p.want {
				l.t.Errorf("%s, %s to %s: answered %v (%v), want %v", p.name, p.network, p.to, err == nil, err, p.want)
			}
		})
	}
	wg.Wait()
}

// end returns the namespace and the addresses of "pod1", "node", "ext" or "service1".
func (l *lab) end(name string) (*nfttest.NS, [2]netip.AddrPort) {
	var out [2]netip.AddrPort
	var ns *nfttest.NS
	for f := range out {
		var a netip.Addr
		port := uint16(8080)
		switch {
		case name == "node":
			ns, a = l.node, nodeAddrs[f]
		case name == "ext":
			ns, a = l.ext, extAddrs[f]
		case strings.HasPrefix(name, "service"):
			a, port = serviceAddr(f, int(name[7]-'0')), 80
		default:
			i := int(name[3] - '0')
			ns, a = l.pods[i], labAddr(f, i)
		}
		out[f] = netip.AddrPortFrom(a, port)
	}
	return ns, out
}

// expect probes "pod1 pod2 tcp" and so on in both families: all of allowed are answered,
// none of denied.
func (l *lab) expect(allowed, denied []string) {
	l.t.Helper()
	var all []probe
	for i, list := range [][]string{allowed, denied} {
		for _, text := range list {
			parts := strings.Fields(text)
			from, _ := l.end(parts[0])
			_, to := l.end(parts[1])
			networks := parts[2:]
			if len(networks) == 0 {
				networks = []string{"tcp", "udp"}
			}
			for _, n := range networks {
				for f := range to {
					all = append(all, probe{name: text, from: from, network: n, to: to[f], want: i == 0})
				}
			}
		}
	}
	l.run(all)
}
