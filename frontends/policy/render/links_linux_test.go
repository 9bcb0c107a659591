package render

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"testing"

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

// TestLinks: the policies of a pod hold for all that its interface sends and receives, also from and to addresses that
// its status does not show, and that the node routes to it.
func TestLinks(t *testing.T) {
	l := newLab(t)
	node, pod := linkLocal(t, l.node, "pod1"), linkLocal(t, l.pods[1], "eth0")
	l.node.Echo(t, netip.AddrPortFrom(node, 8080).String())
	toNode, toPod := netip.AddrPortFrom(node.WithZone(pod.Zone()), 8080), netip.AddrPortFrom(pod.WithZone(node.Zone()), 8080)
	outgoing := []probe{{name: "link-local to the node", from: l.pods[1], source: pod, to: toNode}}
	back := probe{name: "the node to the pod, link-local", from: l.node, source: node, to: toPod}
	var incoming []probe
	for f, second := range []netip.Addr{netip.MustParseAddr("10.244.1.77"), netip.MustParseAddr("fd00:10:244:1::77")} {
		l.pods[1].Run(t, "ip", "addr", "add", netip.PrefixFrom(second, second.BitLen()).String(), "dev", "eth0", "nodad")
		l.pods[1].Echo(t, netip.AddrPortFrom(second, 8081).String())
		for _, to := range []netip.Addr{nodeAddrs[f], extAddrs[f], labAddr(f, 2)} {
			outgoing = append(outgoing, probe{name: "from the second address", from: l.pods[1], source: second, to: netip.AddrPortFrom(to, 8080)})
		}
		incoming = append(incoming, probe{name: "to the second address", from: l.pods[2], to: netip.AddrPortFrom(second, 8081)})
	}
	expect := func(when string, want bool, all ...probe) {
		t.Helper()
		var both []probe
		for _, p := range all {
			p.name, p.want = when+": "+p.name, want
			for _, network := range []string{"tcp", "udp"} {
				p.network = network
				both = append(both, p)
			}
		}
		l.run(both)
	}
	l.policy("lab/p", nil, nil)
	set := func(ingress, egress []string) {
		p := l.pod("lab/pod1", labAddr(0, 1).String()+" "+labAddr(1, 1).String(), ingress, egress)
		p.Link = model.Link{Name: "pod1"}
		l.apply()
	}
	policy, open := []string{"lab/p"}, append(slices.Concat(outgoing, incoming), back)
	expect("without policies", true, open...)
	var local []*link
	for _, network := range []string{"tcp", "udp"} {
		c, err := dial(l.pods[1], network, pod, toNode, wait(true))
		must(t, err)
		t.Cleanup(func() { c.Close() })
		local = append(local, c)
	}
	set(nil, policy)
	l.alive("link-local, open before the policy", local, false)
	expect("egress is denied", false, outgoing...)
	expect("egress is denied", true, append(incoming, back)...)
	set(policy, nil)
	expect("ingress is denied", true, append(outgoing, back)...)
	expect("ingress is denied", false, incoming...)
	set(nil, nil)
	expect("no policy any more", true, open...)
}
