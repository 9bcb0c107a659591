package lab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// veth makes a pair of interfaces, one in each namespace, both up.
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

func (n *Namespace) up(link string) error {
	l, err := n.handle.LinkByName(link)
	if err == nil {
		err = n.handle.LinkSetUp(l)
	}
	if err != nil {
		return fmt.Errorf("set %s up in %s: %w", link, n.name, err)
	}
	return nil
}

// bridge makes a bridge that is up.
func (n *Namespace) bridge(name string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := n.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("make bridge %s in %s: %w", name, n.name, err)
	}
	return n.up(name)
}

// enslave puts a link on a bridge.
func (n *Namespace) enslave(link, bridge string) error {
	l, err := n.handle.LinkByName(link)
	if err != nil {
		return fmt.Errorf("find %s in %s: %w", link, n.name, err)
	}
	b, err := n.handle.LinkByName(bridge)
	if err == nil {
		err = n.handle.LinkSetMaster(l, b)
	}
	if err != nil {
		return fmt.Errorf("put %s on %s in %s: %w", link, bridge, n.name, err)
	}
	return nil
}

// addAddress gives a link an address that can be used at once.
func (n *Namespace) addAddress(link string, prefix netip.Prefix) error {
	l, err := n.handle.LinkByName(link)
	if err == nil {
		addr := &netlink.Addr{IPNet: ipNet(prefix)}
		if prefix.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		}
		err = n.handle.AddrAdd(l, addr)
	}
	if err != nil {
		return fmt.Errorf("add address %s to %s in %s: %w", prefix, link, n.name, err)
	}
	return nil
}

// delAddress takes an address from a link.
func (n *Namespace) delAddress(link string, prefix netip.Prefix) error {
	l, err := n.handle.LinkByName(link)
	if err == nil {
		err = n.handle.AddrDel(l, &netlink.Addr{IPNet: ipNet(prefix)})
	}
	if err != nil {
		return fmt.Errorf("take address %s from %s in %s: %w", prefix, link, n.name, err)
	}
	return nil
}

// delLink removes a link, and with a veth its other end.
func (n *Namespace) delLink(link string) error {
	l, err := n.handle.LinkByName(link)
	if err == nil {
		err = n.handle.LinkDel(l)
	}
	if err != nil {
		return fmt.Errorf("remove %s in %s: %w", link, n.name, err)
	}
	return nil
}

// delRoute removes the route of a prefix through a link.
func (n *Namespace) delRoute(link string, prefix netip.Prefix) error {
	l, err := n.handle.LinkByName(link)
	if err == nil {
		err = n.handle.RouteDel(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(prefix), Scope: netlink.SCOPE_NOWHERE})
	}
	if err != nil {
		return fmt.Errorf("remove route to %s over %s in %s: %w", prefix, link, n.name, err)
	}
	return nil
}

// addRoute routes a prefix through a link, directly or (with a valid gateway) by way of it.
func (n *Namespace) addRoute(link string, prefix netip.Prefix, gateway netip.Addr) error {
	l, err := n.handle.LinkByName(link)
	if err == nil {
		route := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(prefix)}
		if gateway.IsValid() {
			route.Gw = gateway.AsSlice()
			route.Flags = int(netlink.FLAG_ONLINK)
		} else if prefix.Addr().Is4() {
			route.Scope = netlink.SCOPE_LINK
		}
		err = n.handle.RouteAdd(route)
	}
	if err != nil {
		return fmt.Errorf("add route to %s over %s in %s: %w", prefix, link, n.name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// host is the prefix of one address.
func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
