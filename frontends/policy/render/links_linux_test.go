package render

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// linkLocal returns the link-local address of an interface, with its number as the zone: names
// would be looked up in one namespace for all.
func linkLocal(t *testing.T, ns *nfttest.NS, name string) netip.Addr {
	t.Helper()
	var out netip.Addr
	err := ns.Do(func() error {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		all, err := i.Addrs()
		for _, a := range all {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsLinkLocalUnicast() {
				out = p.Addr().WithZone(strconv.Itoa(i.Index))
			}
		}
		return err
	})
	if err != nil || !out.IsValid() {
		t.Fatalf("%s: no link-local address, error %v", name, err)
	}
	return out
}

// dialFrom opens a connection from an address.
func dialFrom(ns *nfttest.NS, network string, from netip.Addr, to netip.AddrPort, limit time.Duration) (*link, error) {
	d := net.Dialer{Timeout: limit, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	if network == "udp" {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	var out *link
	err := ns.Do(func() error {
		c, err := d.DialContext(context.Background(), network, to.String())
		if err == nil {
			out = &link{c}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := out.echo(limit); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// TestLinks: the policies of a pod hold for all that its interface sends and receives.
func TestLinks(t *testing.T) {
	l := newLab(t)
	// The pod has addresses that its status does not show, and the node routes them to it.
	second := [2]netip.Addr{netip.MustParseAddr("10.244.1.77"), netip.MustParseAddr("fd00:10:244:1::77")}
	for _, a := range second {
		l.pods[1].Run(t, "ip", "addr", "add", netip.PrefixFrom(a, a.BitLen()).String(), "dev", "eth0", "nodad")
		serveAt(t, l.pods[1], netip.AddrPortFrom(a, 8081).String())
	}
	node := linkLocal(t, l.node, "pod1")
	serveAt(t, l.node, netip.AddrPortFrom(node, 8080).String())
	pod := linkLocal(t, l.pods[1], "eth0")
	type probe struct {
		name string
		dial func(network string, limit time.Duration) (*link, error)
	}
	outgoing := []probe{
		{"link-local to the node", func(n string, limit time.Duration) (*link, error) {
			return dialFrom(l.pods[1], n, pod, netip.AddrPortFrom(node.WithZone(pod.Zone()), 8080), limit)
		}},
	}
	var incoming []probe
	for f, a := range second {
		outgoing = append(outgoing,
			probe{"second address to the node", func(n string, limit time.Duration) (*link, error) {
				return dialFrom(l.pods[1], n, a, netip.AddrPortFrom(nodeAddrs[f], 8080), limit)
			}},
			probe{"second address to the outside", func(n string, limit time.Duration) (*link, error) {
				return dialFrom(l.pods[1], n, a, netip.AddrPortFrom(extAddrs[f], 8080), limit)
			}},
			probe{"second address to a pod", func(n string, limit time.Duration) (*link, error) {
				return dialFrom(l.pods[1], n, a, netip.AddrPortFrom(labAddr(f, 2), 8080), limit)
			}})
		incoming = append(incoming, probe{"from a pod to the second address", func(n string, limit time.Duration) (*link, error) {
			return dial(l.pods[2], n, netip.AddrPortFrom(a, 8081), limit)
		}})
	}
	back := probe{"the node to the pod, link-local", func(n string, limit time.Duration) (*link, error) {
		return dialFrom(l.node, n, node, netip.AddrPortFrom(pod.WithZone(node.Zone()), 8080), limit)
	}}
	expect := func(when string, all []probe, want bool) (open []*link) {
		t.Helper()
		for _, p := range all {
			for _, n := range []string{"tcp", "udp"} {
				c, err := p.dial(n, wait(want))
				if (err == nil) != want {
					t.Errorf("%s: %s, %s: %v, want answered %v", when, p.name, n, err, want)
				}
				if err == nil {
					t.Cleanup(func() { c.Close() })
					open = append(open, c)
				}
			}
		}
		return open
	}
	all := append(append([]probe{back}, outgoing...), incoming...)
	local := expect("without policies", outgoing[:1], true)
	expect("without policies", all, true)
	l.policy("lab/p", nil, nil)
	set := func(ingress, egress []string) {
		p := l.pod("lab/pod1", labAddr(0, 1).String()+" "+labAddr(1, 1).String(), ingress, egress)
		p.Link = model.Link{Name: "pod1"}
		l.apply()
	}
	policy := []string{"lab/p"}
	set(nil, policy)
	l.alive("link-local, open before the policy", local, false)
	expect("egress is denied", outgoing, false)
	expect("egress is denied", append([]probe{back}, incoming...), true)
	set(policy, nil)
	expect("ingress is denied", append([]probe{back}, outgoing...), true)
	expect("ingress is denied", incoming, false)
	set(nil, nil)
	expect("no policy any more", all, true)
}
