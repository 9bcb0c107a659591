package nfttest

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Port is one end of a veth pair.
type Port struct {
	NS *NS
	// Name is the interface's name, at most 15 bytes.
	Name string
	// Addrs are the addresses of the interface, with their prefix lengths.
	Addrs []netip.Prefix
}

// Veth connects two namespaces by a veth pair, and sets both ends up with their addresses.
// It ends the test if that fails. IPv6 addresses are usable at once, without
// duplicate address detection.
func Veth(t testing.TB, a, b Port) {
	t.Helper()
	if err := veth(a, b); err != nil {
		t.Fatalf("make veth %s-%s: %v", a.Name, b.Name, err)
	}
}

// Route adds a route to dst through gateway in the namespace. It ends the test
// if that fails.
func (ns *NS) Route(t testing.TB, dst netip.Prefix, gateway netip.Addr) {
	t.Helper()
	err := ns.withNetlink(func(nl *netlink.Handle) error {
		return nl.RouteAdd(&netlink.Route{Dst: ipNet(dst), Gw: gateway.AsSlice()})
	})
	if err != nil {
		t.Fatalf("add route %s via %s: %v", dst, gateway, err)
	}
}

// veth creates the pair.
func veth(a, b Port) error {
	err := a.NS.withNetlink(func(nl *netlink.Handle) error {
		link := &netlink.Veth{
			LinkAttrs:     netlink.LinkAttrs{Name: a.Name},
			PeerName:      b.Name,
			PeerNamespace: netlink.NsFd(b.NS.FD()),
		}
		return nl.LinkAdd(link)
	})
	if err != nil {
		return fmt.Errorf("add link: %w", err)
	}
	for _, p := range []Port{a, b} {
		if err := p.NS.withNetlink(func(nl *netlink.Handle) error { return configure(nl, p) }); err != nil {
			return fmt.Errorf("configure %s: %w", p.Name, err)
		}
	}
	return nil
}

// configure adds the addresses of a port and sets it up.
func configure(nl *netlink.Handle, p Port) error {
	link, err := nl.LinkByName(p.Name)
	if err != nil {
		return err
	}
	for _, prefix := range p.Addrs {
		addr := &netlink.Addr{IPNet: ipNet(prefix)}
		if prefix.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := nl.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("add address %s: %w", prefix, err)
		}
	}
	return nl.LinkSetUp(link)
}

// withNetlink runs f with an rtnetlink handle of the namespace.
func (ns *NS) withNetlink(f func(*netlink.Handle) error) error {
	nl, err := netlink.NewHandleAt(ns.handle, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open rtnetlink: %w", err)
	}
	defer nl.Close()
	return f(nl)
}

// ipNet converts a prefix, keeping its host bits.
func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
