package lab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func veth(a *Namespace, aName string, b *Namespace, bName string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = aName
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: bName, PeerNamespace: netlink.NsFd(int(b.file.Fd()))}
	if err := a.handle.LinkAdd(pair); err != nil {
		return fmt.Errorf("link %s in %s to %s in %s: %w", aName, a.name, bName, b.name, err)
	}
	if err := a.up(aName); err != nil {
		return err
	}
	return b.up(bName)
}

func (n *Namespace) link(task, name string, f func(netlink.Link) error) error {
	l, err := n.handle.LinkByName(name)
	if err == nil {
		err = f(l)
	}
	if err != nil {
		return fmt.Errorf("%s %s in %s: %w", task, name, n.name, err)
	}
	return nil
}

func (n *Namespace) up(link string) error { return n.link("set up", link, n.handle.LinkSetUp) }

func (n *Namespace) bridge(name string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := n.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("make bridge %s in %s: %w", name, n.name, err)
	}
	return n.up(name)
}

func (n *Namespace) enslave(link, bridge string) error {
	return n.link("find bridge", bridge, func(b netlink.Link) error {
		return n.link("put on "+bridge, link, func(l netlink.Link) error { return n.handle.LinkSetMaster(l, b) })
	})
}

func (n *Namespace) addAddress(link string, prefix netip.Prefix) error {
	addr := &netlink.Addr{IPNet: ipNet(prefix)}
	if prefix.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	return n.link("add address "+prefix.String()+" to", link, func(l netlink.Link) error { return n.handle.AddrAdd(l, addr) })
}

// delLink also removes the other end of a veth pair.
func (n *Namespace) delLink(link string) error { return n.link("remove", link, n.handle.LinkDel) }

// An invalid gateway means a direct route.
func (n *Namespace) addRoute(link string, prefix netip.Prefix, gateway netip.Addr) error {
	return n.link("add route to "+prefix.String()+" over", link, func(l netlink.Link) error {
		route := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(prefix)}
		if gateway.IsValid() {
			route.Gw = gateway.AsSlice()
			route.Flags = int(netlink.FLAG_ONLINK)
		} else if prefix.Addr().Is4() {
			route.Scope = netlink.SCOPE_LINK
		}
		return n.handle.RouteAdd(route)
	})
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
