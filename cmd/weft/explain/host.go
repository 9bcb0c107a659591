package explain

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/eval"
)

// host asks the kernel for routes and addresses, and caches interfaces.
type host struct {
	links map[int]eval.Interface
}

func newHost() *host { return &host{links: make(map[int]eval.Interface)} }

func (h *host) inputs() eval.Host {
	return eval.Host{Route: h.route, AddressType: h.addressType, Reaches: h.reaches, Address: h.address, Port: h.port, Filtered: func(p *eval.Packet) bool { return bridgeFilter(p.Source()) }}
}

func (h *host) link(index int) (eval.Interface, error) {
	if i, ok := h.links[index]; ok {
		return i, nil
	}
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return eval.Interface{}, fmt.Errorf("interface %d: %w", index, err)
	}
	return h.remember(l), nil
}

func (h *host) named(name string) (eval.Interface, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return eval.Interface{}, fmt.Errorf("interface %s: %w", name, err)
	}
	return h.remember(l), nil
}

func (h *host) remember(l netlink.Link) eval.Interface {
	a := l.Attrs()
	i := eval.Interface{Index: uint32(a.Index), Name: a.Name} //nolint:gosec // small
	h.links[a.Index] = i
	return i
}

// lookup returns a route. in is zero for a packet of the node itself.
func (h *host) lookup(src, dst netip.Addr, in eval.Interface, mark uint32) (netlink.Route, error) {
	o := &netlink.RouteGetOptions{Mark: mark}
	if in.Index != 0 {
		o.IifIndex = int(in.Index)
	}
	if src.IsValid() {
		o.SrcAddr = src.AsSlice()
	}
	routes, err := netlink.RouteGetWithOptions(dst.AsSlice(), o)
	if err != nil {
		return netlink.Route{}, err
	}
	if len(routes) == 0 {
		return netlink.Route{}, unix.EHOSTUNREACH
	}
	return routes[0], nil
}

// refusal explains the error of lookup. It may be empty.
func (h *host) refusal(err error, src, dst netip.Addr, in eval.Interface) string {
	switch {
	// Since Linux 6.13 the first two are one error.
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL):
		if back, _, backErr := h.towards(src); reversePathFilter(in.Name) && (backErr != nil || back != in) {
			return fmt.Sprintf("the reverse path filter (rp_filter) drops it: the route back to %s is not through %s; set rp_filter to 2, or change that route", src, in.Name)
		}
		return fmt.Sprintf("%s is not a source that can come in through %s", src, in.Name)
	case errors.Is(err, unix.ENETUNREACH):
		return fmt.Sprintf("this node has no route to %s; add one, or a default route", dst)
	case errors.Is(err, unix.EHOSTUNREACH):
		return fmt.Sprintf("this node does not forward it to %[1]s: the route is unreachable, or forwarding (net.ipv4.ip_forward) is off; `ip route get %[1]s` shows the route", dst)
	case errors.Is(err, unix.EACCES):
		return fmt.Sprintf("a route of this node prohibits %[1]s; look at `ip rule` and `ip route get %[1]s`", dst)
	default:
		return ""
	}
}

// reversePathFilter reads both values: the kernel uses the greater of the interface's and "all".
func reversePathFilter(name string) bool {
	for _, of := range []string{"all", name} {
		b, err := os.ReadFile(filepath.Join("/proc/sys/net/ipv4/conf", filepath.Base(of), "rp_filter"))
		if err == nil && strings.TrimSpace(string(b)) != "0" {
			return true
		}
	}
	return false
}

func (h *host) route(p *eval.Packet) (eval.Route, bool) {
	src, dst := p.Source(), p.Destination()
	r, err := h.lookup(src, dst, p.In, p.Mark)
	if err != nil {
		text := h.refusal(err, src, dst, p.In)
		return eval.Route{Drop: text}, text != ""
	}
	switch r.Type {
	case unix.RTN_LOCAL, unix.RTN_BROADCAST, unix.RTN_MULTICAST:
		return eval.Route{Local: true}, true
	case unix.RTN_BLACKHOLE, unix.RTN_UNREACHABLE, unix.RTN_PROHIBIT:
		return eval.Route{Drop: fmt.Sprintf("the route of this node to %[1]s drops it; look at `ip route get %[1]s`", dst)}, true
	}
	out, err := h.link(r.LinkIndex)
	return eval.Route{Out: out, Router: len(r.Gw) > 0 || r.Via != nil}, err == nil
}

// router returns an invalid address if the router is unknown or dst is reached directly.
func (h *host) router(src, dst netip.Addr, in eval.Interface, mark uint32) netip.Addr {
	r, err := h.lookup(src, dst, in, mark)
	if err != nil {
		return netip.Addr{}
	}
	gw, _ := netip.AddrFromSlice(r.Gw)
	if via, ok := r.Via.(*netlink.Via); ok {
		gw, _ = netip.AddrFromSlice(via.Addr) // of the other IP family
	}
	return gw.Unmap()
}

func (h *host) addressType(addr netip.Addr) (rtn uint32, ok bool) {
	if addr.IsMulticast() {
		return unix.RTN_MULTICAST, true
	}
	r, err := h.lookup(netip.Addr{}, addr, eval.Interface{}, 0)
	switch {
	case err == nil && (r.Type == unix.RTN_LOCAL || r.Type == unix.RTN_BROADCAST || r.Type == unix.RTN_ANYCAST):
		return uint32(r.Type), true //nolint:gosec // a small number
	case addr.Is4(), err == nil:
		return unix.RTN_UNICAST, true
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return unix.RTN_UNREACHABLE, true
	default:
		return 0, false
	}
}

// reaches takes some of the kernel's errors for an interface without a route.
func (h *host) reaches(addr netip.Addr, through eval.Interface) (reached, ok bool) {
	routes, err := netlink.RouteGetWithOptions(addr.AsSlice(), &netlink.RouteGetOptions{OifIndex: int(through.Index), FIBMatch: true})
	if err != nil {
		return false, errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL)
	}
	for _, r := range routes {
		reached = reached || r.Type == unix.RTN_UNICAST && (r.LinkIndex == int(through.Index) || slices.ContainsFunc(r.MultiPath, func(n *netlink.NexthopInfo) bool { return n.LinkIndex == int(through.Index) }))
	}
	return reached, true
}

// address returns the address to masquerade or redirect to. Like inet_select_addr for IPv4, it
// prefers the first one in the network of the next hop; for IPv6 the kernel chooses.
func (h *host) address(i eval.Interface, p *eval.Packet) (addr netip.Addr, ok bool) {
	dst := p.Destination()
	hop := dst
	if r, err := h.lookup(netip.Addr{}, dst, eval.Interface{}, p.Mark); err == nil {
		if src, ok := netip.AddrFromSlice(r.Src); ok && dst.Is6() && r.LinkIndex == int(i.Index) {
			return src, true
		}
		if gw, ok := netip.AddrFromSlice(r.Gw); ok {
			hop = gw.Unmap()
		}
	}
	family := netlink.FAMILY_V4
	if dst.Is6() {
		family = netlink.FAMILY_V6
	}
	addrs, err := netlink.AddrList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: int(i.Index)}}, family)
	if err != nil {
		return addr, false
	}
	for _, a := range addrs {
		candidate, valid := netip.AddrFromSlice(a.IP)
		if !valid || a.Scope != unix.RT_SCOPE_UNIVERSE || a.Flags&unix.IFA_F_SECONDARY != 0 {
			continue
		}
		candidate = candidate.Unmap()
		if !ok {
			addr, ok = candidate, true
		}
		if a.IPNet.Contains(hop.AsSlice()) {
			return candidate, true
		}
	}
	return addr, ok
}

// towards returns the interface for packets to and from an address. local is for the node's own
// addresses.
func (h *host) towards(addr netip.Addr) (in eval.Interface, local bool, err error) {
	r, err := h.lookup(netip.Addr{}, addr, eval.Interface{}, 0)
	if err != nil {
		return in, false, fmt.Errorf("the route of this node to %s: %w", addr, err)
	}
	if r.Type == unix.RTN_LOCAL {
		return in, true, nil
	}
	in, err = h.link(r.LinkIndex)
	return in, false, err
}

// outside returns the interface of the default route, and an address beyond it.
func (h *host) outside(six bool) (in eval.Interface, addr netip.Addr, err error) {
	addr = netip.MustParseAddr("203.0.113.1") // for documentation (RFC 5737)
	if six {
		addr = netip.MustParseAddr("2001:db8:ffff::1") // for documentation (RFC 3849)
	}
	in, local, err := h.towards(addr)
	if err == nil && local {
		err = fmt.Errorf("%s is an address of this node: give --from the address of a client", addr)
	}
	if err != nil {
		err = fmt.Errorf("there is no way from outside: %w", err)
	}
	return in, addr, err
}

func (h *host) sourceTo(dst netip.Addr) (netip.Addr, error) {
	r, err := h.lookup(netip.Addr{}, dst, eval.Interface{}, 0)
	if errors.Is(err, unix.ENETUNREACH) {
		return netip.Addr{}, fmt.Errorf("processes of this node get \"%w\" for %s: the node has no route to it; add one, or a default route", err, dst)
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("the route of this node to %s: %w", dst, err)
	}
	src, ok := netip.AddrFromSlice(r.Src)
	if !ok {
		return netip.Addr{}, fmt.Errorf("the route of this node to %s has no source address", dst)
	}
	return src.Unmap(), nil
}
