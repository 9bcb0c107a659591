package balancer

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// pool reuses an address as late as possible, because clients may remember the last Service that had
// it.
type pool struct {
	ranges []netip.Prefix
	used   map[netip.Addr]bool
	last   map[netip.Prefix]netip.Addr
}

func (p *pool) allocate(families []corev1.IPFamily) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, family := range families {
		addr, err := p.next(family == corev1.IPv6Protocol)
		if err != nil {
			p.free(all)
			return nil, err
		}
		all = append(all, addr)
	}
	return all, nil
}

func (p *pool) next(v6 bool) (netip.Addr, error) {
	if p.used == nil {
		p.used, p.last = map[netip.Addr]bool{}, map[netip.Prefix]netip.Addr{}
	}
	for _, r := range p.ranges {
		if r.Addr().Is6() != v6 {
			continue
		}
		addr, ok := p.last[r]
		if !ok {
			addr = r.Addr()
		}
		// The first address of a range and the last address of an IPv4 range have other meanings.
		const tries = 256
		for range tries {
			addr = addr.Next()
			if !r.Contains(addr) || addr.Is4() && !r.Contains(addr.Next()) {
				addr = r.Addr()
				continue
			}
			if !p.used[addr] {
				p.used[addr], p.last[r] = true, addr
				return addr, nil
			}
		}
		return netip.Addr{}, fmt.Errorf("all addresses of %s are in use", r)
	}
	return netip.Addr{}, fmt.Errorf("no range of addresses of this family (IPv6: %t)", v6)
}

func (p *pool) free(addresses []netip.Addr) {
	for _, a := range addresses {
		delete(p.used, a)
	}
}
