package desired

import (
	"cmp"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// pools is the index of a map's UDP backends, kept up to date with its merged
// elements, without those of fragments that do not want their flows to be watched. It tells a commit, at the cost of the change, whether a backend
// that left one slot is still in another.
type pools struct {
	layout layout
	// backends counts the elements of a destination that have the same backend: its
	// keys are both as the map packs them. totals counts all of a destination.
	backends, totals counts
}

// backend is one destination's backend, both as the map packs them.
type backend struct {
	// dest is the packed key up to and with the port.
	dest string
	// data is the packed address and port.
	data string
}

// layout has the positions of the parts of a packed key and its data.
type layout struct {
	addrLen     int // 0 where the key has no address
	proto, port int
	// end is the length of the destination in the key, dataLen that of the
	// address in the data, backendLen that of all the data.
	end, dataLen, backendLen int
}

// newLayout returns the layout of a map whose flows can be watched: its key
// begins with an optional address, inet_proto and inet_service, in this
// order, and its data is an address and a port. It goes by the names of the
// types alone, which is all that a dumped declaration has.
func newLayout(d *nftset.Set) (layout, bool) {
	var l layout
	if !d.Map || d.Verdict || len(d.Data.Names) != 2 {
		return l, false
	}
	names := d.Key.Names
	if len(names) > 0 && addrLen(names[0]) > 0 {
		l.addrLen = addrLen(names[0])
		l.end = l.addrLen
		names = names[1:]
	}
	if len(names) < 2 || names[0] != "inet_proto" || names[1] != "inet_service" {
		return l, false
	}
	l.proto, l.port, l.end = l.end, l.end+partLen, l.end+2*partLen
	l.dataLen, l.backendLen = addrLen(d.Data.Names[0]), int(d.Data.Len)
	return l, l.dataLen > 0 && d.Data.Names[1] == "inet_service"
}

// partLen is the room of a protocol or port in a concatenation, whose parts
// are padded to multiples of four bytes.
const partLen = 4

// addrLen is the length of an address type, 0 of other types.
func addrLen(name string) int {
	switch name {
	case "ipv4_addr":
		return 4
	case "ipv6_addr":
		return 16
	default:
		return 0
	}
}

// backend returns an element's destination and backend, if it is UDP.
func (l *layout) backend(e *nftset.Element) (backend, bool) {
	if len(e.Key) < l.end || e.Key[l.proto] != unix.IPPROTO_UDP || len(e.Data) < l.dataLen+2 || len(e.Data) != l.backendLen {
		return backend{}, false
	}
	return backend{dest: e.Key[:l.end], data: e.Data}, true
}

// packed returns the packed destination and backend of a UDP flow, if a map of this layout
// can have it.
func (l *layout) packed(dest, to netip.AddrPort) (backend, bool) {
	addr, data := dest.Addr().AsSlice(), to.Addr().AsSlice()
	if len(data) != l.dataLen || l.addrLen > 0 && len(addr) != l.addrLen || l.addrLen == 0 && !dest.Addr().IsUnspecified() {
		return backend{}, false
	}
	key, value := make([]byte, l.end), make([]byte, l.backendLen)
	copy(key[:l.addrLen], addr)
	key[l.proto] = unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(key[l.port:], dest.Port())
	binary.BigEndian.PutUint16(value[copy(value, data):], to.Port())
	return backend{dest: string(key), data: string(value)}, true
}

// dest unpacks a destination. Where the key has no address it is the unspecified
// one of the family that its backends have: see conntrack.Change.
func (l *layout) dest(dest string) netip.AddrPort {
	addr, ok := netip.AddrFromSlice([]byte(dest[:l.addrLen]))
	if !ok {
		addr, _ = netip.AddrFromSlice(make([]byte, l.dataLen))
	}
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16([]byte(dest[l.port:l.port+2])))
}

// addrPort unpacks a backend.
func (l *layout) addrPort(data string) netip.AddrPort {
	addr, _ := netip.AddrFromSlice([]byte(data[:l.dataLen]))
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16([]byte(data[l.dataLen:l.dataLen+2])))
}

// change follows a change of a merged element. It does nothing on nil.
func (p *pools) change(c *change) {
	if p == nil {
		return
	}
	had, has := c.had && c.from.flows(), c.has && c.to.flows()
	if had && has && c.before.Data == c.after.Data {
		return
	}
	if had {
		p.count(&c.before, -1)
	}
	if has {
		p.count(&c.after, +1)
	}
}

func (p *pools) count(e *nftset.Element, by int) {
	b, ok := p.layout.backend(e)
	if !ok {
		return
	}
	p.backends.add(b.dest, b.data, by)
	p.totals.add(b.dest, "", by)
}

// index makes or drops a set's pools as its shares want; anew makes them
// again.
func (s *State) index(o *set, anew bool) {
	o.table.indexAddresses(o)
	watched := slices.ContainsFunc(o.shares, func(sh *setShare) bool { return sh.conntrack })
	if watched && o.pools != nil && !anew {
		return
	}
	o.pools = nil
	delete(s.watched, o)
	if !watched {
		return
	}
	l, ok := newLayout(o.decl())
	if !ok {
		return
	}
	s.watched[o] = struct{}{}
	o.pools = &pools{layout: l, backends: newCounts(l.end+l.backendLen, 0), totals: newCounts(l.end, 0)}
	for i, sh := range o.shares {
		if !sh.flows() {
			continue
		}
		for id, e := range sh.elements.all() {
			s.work.Keys++
			if i == 0 || o.winner(id) == sh {
				o.pools.count(&e, +1)
			}
		}
	}
}

// leadsElsewhere reports whether a watched map of another table leads a destination to a
// backend. Then flows between them are not stale: they can be those of another publisher.
func (s *State) leadsElsewhere(table *table, dest, to netip.AddrPort) bool {
	for o := range s.watched {
		if o.table == table {
			continue
		}
		if b, ok := o.pools.layout.packed(dest, to); ok && o.pools.backends.get(b.dest, b.data) > 0 {
			return true
		}
	}
	return false
}

// staleFlows derives the stale UDP flows of a map whose flows are watched, or were until this
// change, from a change of its elements. touched has the kernel's elements, packed for before.
// If before is nil, the kernel has no such map. Deserted means that the
// destination has no watched element any more.
func (o *set) staleFlows(before *nftset.Set, touched map[string]touch, add func(st conntrack.Change, deserted bool)) {
	var old layout
	packed := false
	if before != nil {
		old, packed = newLayout(before)
	}
	now := o.pools
	switch {
	case now == nil && (!o.watched || !packed):
		return
	case now == nil:
		// The last fragment whose flows are watched has gone.
		now = &pools{layout: old}
	case !packed || old != now.layout:
		// Nothing was there, or all of it looked different.
		o.untranslated(func(st conntrack.Change) { add(st, false) })
		return
	}
	l := &now.layout
	// balance is how many more elements a destination has than before. kept are backends
	// that an element has whose flows are not watched.
	balance := map[string]int{}
	kept := map[backend]bool{}
	sameLayout := o.exists() && o.hasLayout(l)
	for id := range touched {
		e, sh, ok := o.decided(id)
		if !ok || !sameLayout {
			continue
		}
		switch b, ok := l.backend(&e); {
		case ok && sh.flows():
			balance[b.dest]++
		case ok:
			kept[b] = true
		}
	}
	gone := map[string][]netip.AddrPort{}
	for _, t := range touched {
		b, ok := l.backend(&t.before)
		if !ok || !t.had || !t.flows {
			continue
		}
		balance[b.dest]--
		if now.backends.get(b.dest, b.data) == 0 && !kept[b] {
			gone[b.dest] = append(gone[b.dest], l.addrPort(b.data))
		}
	}
	var at map[netip.Addr]struct{}
	for dest, more := range balance {
		to, total := l.dest(dest), now.totals.get(dest, "")
		st := conntrack.Change{Addr: to.Addr(), Port: to.Port(), Removed: compactAddrs(gone[dest]), First: total > 0 && total == more}
		if st.First && l.addrLen == 0 {
			if at == nil {
				at = o.table.at()
			}
			st.At = at
		}
		if st.First || len(st.Removed) > 0 {
			add(st, total == 0)
		}
	}
}

// hasLayout reports whether a map's elements are packed as a layout says.
func (o *set) hasLayout(l *layout) bool {
	now, ok := newLayout(o.decl())
	return ok && now == *l
}

func compactAddrs(addrs []netip.AddrPort) []netip.AddrPort {
	slices.SortFunc(addrs, netip.AddrPort.Compare)
	return slices.Compact(addrs)
}

func compareStale(a, b conntrack.Change) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Port, b.Port))
}

// Live returns the destinations in the maps whose flows are watched that have
// backends, ordered by address and port.
func (s *State) Live() []conntrack.Destination {
	all, at := map[netip.AddrPort][]netip.AddrPort{}, map[netip.Addr]struct{}{}
	for _, t := range s.tables {
		for _, p := range t.parts {
			o, ok := p.(*set)
			if !ok || o.pools == nil {
				continue
			}
			l := &o.pools.layout
			if l.addrLen == 0 {
				for addr := range t.at() {
					at[addr] = struct{}{}
				}
			}
			for b := range o.pools.backends.all() {
				dest := l.dest(b[:l.end])
				all[dest] = append(all[dest], l.addrPort(b[l.end:]))
			}
		}
	}
	live := make([]conntrack.Destination, 0, len(all))
	for _, dest := range slices.SortedFunc(maps.Keys(all), netip.AddrPort.Compare) {
		d := conntrack.Destination{Addr: dest.Addr(), Port: dest.Port(), Backends: compactAddrs(all[dest])}
		if dest.Addr().IsUnspecified() {
			d.At = at
		}
		live = append(live, d)
	}
	return live
}

// A destination without an address, such as a NodePort, answers at the addresses that the rules
// before it let through: local ones, and those in a set that a rule looks up beside a map by port. A
// flow that began before its address was one of them was not translated, and is stale once it is.

// byPort reports whether the keys of a map are ports without an address.
func byPort(d *nftset.Set) bool {
	return d.Map && len(d.Key.Names) >= 2 && d.Key.Names[0] == "inet_proto" && d.Key.Names[1] == "inet_service"
}

// indexAddresses notes whether a part of the table is a set of addresses.
func (t *table) indexAddresses(o *set) {
	delete(t.addresses, o)
	if !o.exists() {
		return
	}
	if d := o.decl(); !d.Map && len(d.Key.Names) == 1 && addrLen(d.Key.Names[0]) > 0 {
		if t.addresses == nil {
			t.addresses = map[*set]struct{}{}
		}
		t.addresses[o] = struct{}{}
	}
}

// looksUpPorts reports whether a rule looks up a map by port.
func (t *table) looksUpPorts(r *slot) bool {
	return slices.ContainsFunc(appendReferences(nil, r.rule), func(id objectID) bool {
		m, ok := t.parts[id].(*set)
		return ok && m.exists() && byPort(m.decl())
	})
}

// leadsToPorts reports whether a rule looks up a set of addresses beside a map by port.
func (o *set) leadsToPorts() bool {
	both := func(r *slot) bool {
		return slices.Contains(appendReferences(nil, r.rule), o.id) && o.table.looksUpPorts(r)
	}
	for c := range o.callers {
		if from, ok := c.from.(*chain); ok && slices.ContainsFunc(from.merged(), both) {
			return true
		}
	}
	return false
}

// at returns the single addresses in the sets that lead to destinations without an address. Of a
// range the local addresses alone count.
func (t *table) at() map[netip.Addr]struct{} {
	var all map[netip.Addr]struct{}
	for o := range t.addresses {
		if !o.leadsToPorts() {
			continue
		}
		for _, sh := range o.shares {
			for _, e := range sh.elements.all() {
				if addr, ok := netip.AddrFromSlice([]byte(e.Key)); ok && (e.KeyEnd == "" || e.KeyEnd == e.Key) {
					if all == nil {
						all = map[netip.Addr]struct{}{}
					}
					all[addr] = struct{}{}
				}
			}
		}
	}
	return all
}

// untranslated adds a change for each destination of a map: flows to it that were not translated are
// stale.
func (o *set) untranslated(add func(conntrack.Change)) {
	var at map[netip.Addr]struct{}
	if o.pools.layout.addrLen == 0 {
		at = o.table.at()
	}
	for dest := range o.pools.totals.all() {
		to := o.pools.layout.dest(dest)
		add(conntrack.Change{Addr: to.Addr(), Port: to.Port(), First: true, At: at})
	}
}

// answering adds a change for each UDP port that the table's maps by port have, if the flows of one of
// them are watched: flows there that were not translated are stale, also where no endpoint is left and
// new ones are rejected.
func (t *table) answering(add func(conntrack.Change)) {
	at, seen := t.at(), map[netip.AddrPort]struct{}{}
	for _, p := range t.parts {
		o, ok := p.(*set)
		if !ok || !o.exists() || !byPort(o.decl()) {
			continue
		}
		for _, e := range o.inForce() {
			if len(e.Key) < 2*partLen || e.Key[0] != unix.IPPROTO_UDP || e.KeyEnd != "" && e.KeyEnd != e.Key {
				continue
			}
			for _, local := range t.unspecified() {
				dest := netip.AddrPortFrom(local, binary.BigEndian.Uint16([]byte(e.Key[partLen:])))
				if _, ok := seen[dest]; ok {
					continue
				}
				seen[dest] = struct{}{}
				add(conntrack.Change{Addr: local, Port: dest.Port(), First: true, At: at})
			}
		}
	}
}

// unspecified returns the address that stands for all local ones of each family of the table.
func (t *table) unspecified() []netip.Addr {
	switch t.id.Family {
	case nft.FamilyIP:
		return []netip.Addr{netip.IPv4Unspecified()}
	case nft.FamilyIP6:
		return []netip.Addr{netip.IPv6Unspecified()}
	default:
		return []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
}

// watchesPorts reports whether the flows of a map by port are watched.
func (s *State) watchesPorts(t *table) bool {
	for o := range s.watched {
		if o.table == t && o.pools.layout.addrLen == 0 {
			return true
		}
	}
	return false
}

// reached notes that packets may reach destinations that they did not reach before: any, if the table
// wakes, and those of the maps by port, if rules come that look such a map up, or a set of addresses
// beside one has got some.
func (p *planner) reached(tc *tableChange) {
	switch {
	case p.repair || !tc.before || !tc.table.exists() || len(p.s.watched) == 0:
	case tc.asleep && !tc.table.dormant():
		p.rerouted = true
	case !tc.rewritten && !slices.ContainsFunc(tc.parts, func(c partChange) bool { return c.answers() }):
	case p.s.watchesPorts(tc.table):
		tc.table.answering(func(st conntrack.Change) { p.stale = append(p.stale, st) })
	}
}

// answers reports whether the part is a set of addresses that leads to destinations by port, and gets some.
func (c *partChange) answers() bool {
	o, ok := c.part.(*set)
	if !ok {
		return false
	}
	if _, addresses := o.table.addresses[o]; !addresses {
		return false
	}
	for id, t := range c.touched {
		if _, has := o.effective(id); has && !t.had {
			return o.leadsToPorts()
		}
	}
	return false
}

// Answering returns the flows that are stale because an address or range has become local: those
// to destinations without an address that were not translated. The zero Prefix is any address.
func (s *State) Answering(local netip.Prefix) (stale []conntrack.Change) {
	for _, t := range s.tables {
		if !s.watchesPorts(t) {
			continue
		}
		t.answering(func(st conntrack.Change) {
			if local.IsValid() && local.Addr().Is4() != st.Addr.Is4() {
				return
			}
			if local.IsValid() && local.IsSingleIP() {
				st.Addr, st.At = local.Addr(), nil
			}
			stale = append(stale, st)
		})
	}
	slices.SortFunc(stale, compareStale)
	return stale
}
