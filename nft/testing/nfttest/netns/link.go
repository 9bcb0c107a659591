package netns

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Port is one end of a veth pair.
type Port struct {
	NS *Namespace
	// at most 15 bytes
	Link string
	// with prefix lengths
	Addrs []netip.Prefix
}

// Join connects two namespaces and sets both ends up, without duplicate address detection for IPv6.
func Join(a, b Port) error {
	pair := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: a.Link},
		PeerName:      b.Link,
		PeerNamespace: netlink.NsFd(b.NS.FD()),
	}
	if err := a.NS.nl.LinkAdd(pair); err != nil {
		return fmt.Errorf("connect %s of %s to %s of %s: %w", a.Link, a.NS.Name, b.Link, b.NS.Name, err)
	}
	for _, p := range []Port{a, b} {
		link, err := p.NS.link(p.Link)
		if err != nil {
			return err
		}
		for _, prefix := range p.Addrs {
			addr := &netlink.Addr{IPNet: ipNet(prefix)}
			if prefix.Addr().Is6() {
				addr.Flags = unix.IFA_F_NODAD
			}
			if err := p.NS.nl.AddrAdd(link, addr); err != nil {
				return fmt.Errorf("add address %s to %s of %s: %w", prefix, p.Link, p.NS.Name, err)
			}
		}
		if err := p.NS.up(p.Link); err != nil {
			return err
		}
	}
	return nil
}

// Route adds a route. With a link, the gateway may be zero, or outside the link's prefixes.
func (n *Namespace) Route(dst netip.Prefix, link string, gateway netip.Addr) error {
	r := &netlink.Route{Dst: ipNet(dst)}
	if link != "" {
		l, err := n.link(link)
		if err != nil {
			return err
		}
		r.LinkIndex = l.Attrs().Index
	}
	switch {
	case !gateway.IsValid():
		if dst.Addr().Is4() {
			r.Scope = netlink.SCOPE_LINK
		}
	case link != "":
		r.SetFlag(netlink.FLAG_ONLINK)
		fallthrough
	default:
		r.Gw = gateway.AsSlice()
	}
	if err := n.nl.RouteAdd(r); err != nil {
		return fmt.Errorf("add route to %s in %s: %w", dst, n.Name, err)
	}
	return nil
}

// Addresses returns the addresses of all interfaces.
func (n *Namespace) Addresses() ([]netip.Addr, error) {
	list, err := n.nl.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", n.Name, err)
	}
	var addrs []netip.Addr
	for _, a := range list {
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			addrs = append(addrs, addr.Unmap())
		}
	}
	return addrs, nil
}

func (n *Namespace) link(name string) (netlink.Link, error) {
	link, err := n.nl.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find %s in %s: %w", name, n.Name, err)
	}
	return link, nil
}

func (n *Namespace) up(name string) error {
	link, err := n.link(name)
	if err != nil {
		return err
	}
	if err := n.nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s of %s up: %w", name, n.Name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
