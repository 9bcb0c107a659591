package conntrack

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// family is AF_INET or AF_INET6.
type family uint8

const (
	familyIPv4 family = 2
	familyIPv6 family = 10
)

var families = [...]family{familyIPv4, familyIPv6}

// addr is valid and unmapped.
func familyOf(addr netip.Addr) family {
	if addr.Is4() {
		return familyIPv4
	}
	return familyIPv6
}

type flow struct {
	dst netip.AddrPort
	// reply is the source of replies; it equals dst for an untranslated flow.
	reply netip.AddrPort
}

// matcher decides which flows a sweep removes.
type matcher struct {
	addrs map[netip.AddrPort]*target
	ports map[localPort]*target
	// local is set only if there are ports.
	local locals
	// answered selects flows begun by the destinations.
	answered bool
}

type localPort struct {
	family family
	port   uint16
}

// target selects flows by backend.
type target struct {
	backends map[netip.AddrPort]struct{}
	// keep removes all flows except to backends; otherwise flows to backends are removed.
	keep bool
	// untranslated removes untranslated flows, at local addresses and at the addresses in at.
	untranslated bool
	at           []map[netip.Addr]struct{}
}

func matchChanges(changes []Stale, answered bool) *matcher {
	m := newMatcher()
	m.answered = answered
	for _, c := range changes {
		if len(c.Removed) == 0 && !c.First || c.Answered != answered {
			continue
		}
		for _, t := range m.targets(c.Addr, c.Port, c.Removed) {
			t.untranslated = t.untranslated || c.First
			t.addAt(c.At)
		}
	}
	return m
}

func matchDestinations(destinations []Destination) *matcher {
	m := newMatcher()
	for _, d := range destinations {
		for _, t := range m.targets(d.Addr, d.Port, d.Backends) {
			t.keep = true
			t.addAt(d.At)
		}
	}
	return m
}

func newMatcher() *matcher {
	return &matcher{
		addrs: make(map[netip.AddrPort]*target),
		ports: make(map[localPort]*target),
	}
}

// targets returns a target for each family of the backends if addr has no family, and both without
// backends.
func (m *matcher) targets(addr netip.Addr, port uint16, backends []netip.AddrPort) []*target {
	addr = normalize(addr)
	if addr.IsValid() && !addr.IsUnspecified() {
		return []*target{add(m.addrs, netip.AddrPortFrom(addr, port), backends)}
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
		out = append(out, add(m.ports, localPort{family: f, port: port}, own))
	}
	return out
}

func add[K comparable](targets map[K]*target, key K, backends []netip.AddrPort) *target {
	t := targets[key]
	if t == nil {
		t = &target{backends: make(map[netip.AddrPort]struct{}, len(backends))}
		targets[key] = t
	}
	for _, b := range backends {
		t.backends[netip.AddrPortFrom(normalize(b.Addr()), b.Port())] = struct{}{}
	}
	return t
}

func ofFamily(backends []netip.AddrPort, f family) []netip.AddrPort {
	var out []netip.AddrPort
	for _, b := range backends {
		if addr := normalize(b.Addr()); addr.IsValid() && familyOf(addr) == f {
			out = append(out, b)
		}
	}
	return out
}

// normalize returns an address in the form of the table's entries.
func normalize(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

func (m *matcher) selects(e *Entry) bool {
	f := flow{dst: e.Destination, reply: e.ReplySource}
	if m.answered {
		if e.Destination != e.ReplySource {
			return false
		}
		f = flow{dst: e.Source, reply: e.ReplyDestination}
	}
	return e.Protocol == unix.IPPROTO_UDP && m.remove(f)
}

// remove asks for the address before the local port, as the ruleset does. A translated flow's
// address was local at the translation, so current local addresses do not matter.
func (m *matcher) remove(f flow) bool {
	if t := m.addrs[f.dst]; t != nil {
		if t.remove(f) {
			return true
		}
		if t.keep {
			return false
		}
	}
	t := m.ports[localPort{family: familyOf(f.dst.Addr()), port: f.dst.Port()}]
	return t != nil && t.remove(f) && (f.reply != f.dst || m.local.contains(f.dst.Addr()) || t.isAt(f.dst.Addr()))
}

func (t *target) addAt(addrs map[netip.Addr]struct{}) {
	if len(addrs) > 0 {
		t.at = append(t.at, addrs)
	}
}

func (t *target) isAt(addr netip.Addr) bool {
	return slices.ContainsFunc(t.at, func(at map[netip.Addr]struct{}) bool { _, ok := at[addr]; return ok })
}

func (t *target) remove(f flow) bool {
	_, listed := t.backends[f.reply]
	if t.keep {
		return !listed
	}
	return listed || t.untranslated && f.reply == f.dst
}
