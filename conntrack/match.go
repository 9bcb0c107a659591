package conntrack

import "net/netip"

// family is the address family of a dump, in the kernel's numbers (AF_INET,
// AF_INET6).
type family uint8

const (
	familyIPv4 family = 2
	familyIPv6 family = 10
)

// families are both of them, in the order of passes.
var families = [...]family{familyIPv4, familyIPv6}

// familyOf returns the family of a valid, unmapped address.
func familyOf(addr netip.Addr) family {
	if addr.Is4() {
		return familyIPv4
	}
	return familyIPv6
}

// flow is what decides about an entry: where its first packet was sent to, and
// where the replies come from.
type flow struct {
	dst   netip.AddrPort
	reply netip.AddrPort
}

// matcher says which flows go. It is built once per pass and looked up once
// per flow.
type matcher struct {
	// vips are the destinations with an address, ports the others.
	vips  map[netip.AddrPort]*target
	ports map[localPort]*target
	// local are the addresses of the namespace; filled in only where there
	// are ports.
	local map[netip.Addr]struct{}
}

// localPort is a destination without an address: any local one of a family.
type localPort struct {
	family family
	port   uint16
}

// target is what is known of one destination.
type target struct {
	backends map[netip.AddrPort]struct{}
	// live turns the meaning of backends round: all others are stale.
	live     bool
	unrouted bool
}

// newStaleMatcher joins the entries of stale that share a destination.
func newStaleMatcher(stale []Stale) *matcher {
	m := newMatcher()
	for _, s := range stale {
		if len(s.Gone) == 0 && !s.Unrouted {
			continue
		}
		for _, t := range m.targets(s.Addr, s.Port, s.Gone) {
			t.unrouted = t.unrouted || s.Unrouted
		}
	}
	return m
}

// newLiveMatcher joins the entries of live that share a destination.
func newLiveMatcher(live []Live) *matcher {
	m := newMatcher()
	for _, l := range live {
		for _, t := range m.targets(l.Addr, l.Port, l.Backends) {
			t.live = true
		}
	}
	return m
}

func newMatcher() *matcher {
	return &matcher{
		vips:  make(map[netip.AddrPort]*target),
		ports: make(map[localPort]*target),
	}
}

// targets returns the targets of a destination, with backends added to them.
// A destination of no family is one target for each that it has backends of;
// without backends it is both.
func (m *matcher) targets(addr netip.Addr, port uint16, backends []netip.AddrPort) []*target {
	addr = plain(addr)
	if addr.IsValid() && !addr.IsUnspecified() {
		key := netip.AddrPortFrom(addr, port)
		if m.vips[key] == nil {
			m.vips[key] = &target{backends: make(map[netip.AddrPort]struct{}, len(backends))}
		}
		t := m.vips[key]
		for _, b := range backends {
			t.backends[netip.AddrPortFrom(plain(b.Addr()), b.Port())] = struct{}{}
		}
		return []*target{t}
	}
	var out []*target
	for _, f := range families {
		own := ofFamily(backends, f)
		switch {
		case addr.IsValid() && familyOf(addr) != f:
			continue
		case !addr.IsValid() && len(own) == 0 && len(backends) > 0:
			continue
		}
		key := localPort{family: f, port: port}
		if m.ports[key] == nil {
			m.ports[key] = &target{backends: make(map[netip.AddrPort]struct{}, len(own))}
		}
		for _, b := range own {
			m.ports[key].backends[b] = struct{}{}
		}
		out = append(out, m.ports[key])
	}
	return out
}

// ofFamily returns the backends of one family, their addresses plain.
func ofFamily(backends []netip.AddrPort, f family) []netip.AddrPort {
	var out []netip.AddrPort
	for _, b := range backends {
		if addr := plain(b.Addr()); addr.IsValid() && familyOf(addr) == f {
			out = append(out, netip.AddrPortFrom(addr, b.Port()))
		}
	}
	return out
}

// plain returns the address as an entry of the table has it.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// stale reports whether a flow goes. Where the destination is known by its
// address as well as by a port of the node, a live address decides alone, as
// it does in the ruleset.
func (m *matcher) stale(f flow) bool {
	if t := m.vips[f.dst]; t != nil {
		if t.stale(f) {
			return true
		}
		if t.live {
			return false
		}
	}
	if len(m.ports) == 0 {
		return false
	}
	t := m.ports[localPort{family: familyOf(f.dst.Addr()), port: f.dst.Port()}]
	if t == nil || !t.stale(f) {
		return false
	}
	_, local := m.local[f.dst.Addr()]
	return local
}

func (t *target) stale(f flow) bool {
	_, listed := t.backends[f.reply]
	if t.live {
		return !listed
	}
	return listed || t.unrouted && f.reply == f.dst
}
