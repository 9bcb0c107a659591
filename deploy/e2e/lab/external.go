package lab

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// externalClient has Control's external addresses, outside of the nodes' networks.
func externalClient() Addresses {
	return Addresses{V4: netip.MustParseAddr("198.51.100.1"), V6: netip.MustParseAddr("2001:db8:100::1")}
}

// Balance routes connections from Control to addr, each to one of the nodes. Without nodes their packets
// are lost.
func (l *Lab) Balance(addr netip.Addr, nodes []*Node) error {
	c := l.Control
	over := underlay
	if len(nodes) == 0 {
		over = nowhere
	}
	return c.link("route "+addr.String()+" over", over, func(link netlink.Link) error {
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(host(addr))}
		route.Src = externalClient().of(host(addr)).AsSlice()
		switch len(nodes) {
		case 0:
			return c.handle.RouteReplace(route)
		case 1:
			route.Gw = nodes[0].Addresses.of(host(addr)).AsSlice()
			return c.handle.RouteReplace(route)
		}
		route.LinkIndex = 0
		for _, n := range nodes {
			route.MultiPath = append(route.MultiPath, &netlink.NexthopInfo{
				LinkIndex: link.Attrs().Index, Gw: n.Addresses.of(host(addr)).AsSlice(),
			})
		}
		return c.handle.RouteReplace(route)
	})
}

// nowhere is a bridge without ports, which loses all packets.
const nowhere = "nowhere"

func (l *Lab) prepareExternal() error {
	for _, a := range externalClient().All() {
		if err := l.Control.addAddress(underlay, host(a)); err != nil {
			return err
		}
	}
	if err := l.Control.bridge(nowhere); err != nil {
		return err
	}
	l.links = append(l.links, nowhere)
	if err := l.Control.link("resolve no neighbors on", nowhere, l.Control.handle.LinkSetARPOff); err != nil {
		return err
	}
	for _, path := range []string{"net/ipv4/fib_multipath_hash_policy", "net/ipv6/fib_multipath_hash_policy"} {
		if err := l.Control.Sysctl(path, "1"); err != nil {
			return fmt.Errorf("choose nodes by connection: %w", err)
		}
	}
	return nil
}
