package desired

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired/backends"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// pools is the index of a map's UDP backends, kept up to date with its merged
// elements, without those of fragments that do not want their flows to be watched. It tells a commit, at the cost of the change, whether a backend
// that left one slot is still in another.
type pools struct {
	layout backends.Layout
	// backends counts the elements of a destination that have the same backend: its
	// keys are both as the map packs them. totals counts all of a destination.
	backends, totals packed.Counts
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
	b, ok := p.layout.Backend(e)
	if !ok {
		return
	}
	p.backends.Add(b.Dest, b.Data, by)
	p.totals.Add(b.Dest, "", by)
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
	l, ok := backends.NewLayout(o.decl())
	if !ok {
		return
	}
	s.watched[o] = struct{}{}
	o.pools = &pools{layout: l, backends: packed.NewCounts(l.BackendLen(), 0), totals: packed.NewCounts(l.DestLen(), 0)}
	for i, sh := range o.shares {
		if !sh.flows() {
			continue
		}
		for id, e := range sh.elements.All() {
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
		if b, ok := o.pools.layout.Pack(dest, to); ok && o.pools.backends.Get(b.Dest, b.Data) > 0 {
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
	var old backends.Layout
	known := false
	if before != nil {
		old, known = backends.NewLayout(before)
	}
	now := o.pools
	switch {
	case now == nil && (!o.watched || !known):
		return
	case now == nil:
		// The last fragment whose flows are watched has gone.
		now = &pools{layout: old}
	case !known || old != now.layout:
		// Nothing was there, or all of it looked different.
		o.untranslated(func(st conntrack.Change) { add(st, false) })
		return
	}
	l := &now.layout
	// balance is how many more elements a destination has than before. kept are backends
	// that an element has whose flows are not watched.
	balance := map[string]int{}
	kept := map[backends.Backend]bool{}
	// begun are destinations with a pool that has got its first backend.
	begun := map[string]bool{}
	sameLayout := o.exists() && o.hasLayout(l)
	for id, t := range touched {
		e, sh, ok := o.decided(id)
		if !ok || !sameLayout {
			continue
		}
		switch b, ok := l.Backend(&e); {
		case ok && sh.flows():
			balance[b.Dest]++
			if !t.had && o.begins(&e) {
				begun[b.Dest] = true
			}
		case ok:
			kept[b] = true
		}
	}
	gone := map[string][]netip.AddrPort{}
	for _, t := range touched {
		b, ok := l.Backend(&t.before)
		if !ok || !t.had || !t.flows {
			continue
		}
		balance[b.Dest]--
		if now.backends.Get(b.Dest, b.Data) == 0 && !kept[b] {
			gone[b.Dest] = append(gone[b.Dest], l.AddrPort(b.Data))
		}
	}
	var at map[netip.Addr]struct{}
	for dest, more := range balance {
		to, total := l.Dest(dest), now.totals.Get(dest, "")
		st := conntrack.Change{Addr: to.Addr(), Port: to.Port(), Removed: compactAddrs(gone[dest]), First: total > 0 && total == more || begun[dest]}
		if st.First && l.ByPort() {
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

// begins reports whether an element has the first slot of a pool. The slots of a pool follow each other, and a
// destination may have several: a NodePort with externalTrafficPolicy Local has one of all endpoints and one of
// those on this node, and a client that has to take the latter is not translated before it has a backend.
func (o *set) begins(e *nftset.Element) bool {
	key, first, ok := o.pools.layout.Previous(e.Key)
	if !ok || first {
		return ok
	}
	previous := nftset.Element{Key: key}
	_, _, ok = o.decided(packed.ID(o.decl(), &previous))
	return !ok
}

// hasLayout reports whether a map's elements are packed as a layout says.
func (o *set) hasLayout(l *backends.Layout) bool {
	now, ok := backends.NewLayout(o.decl())
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
			if l.ByPort() {
				for addr := range t.at() {
					at[addr] = struct{}{}
				}
			}
			for b := range o.pools.backends.All() {
				dest := l.Dest(b[:l.DestLen()])
				all[dest] = append(all[dest], l.AddrPort(b[l.DestLen():]))
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

// indexAddresses notes whether a part of the table is a set of addresses.
func (t *table) indexAddresses(o *set) {
	delete(t.addresses, o)
	if !o.exists() {
		return
	}
	if d := o.decl(); !d.Map && len(d.Key.Names) == 1 && backends.AddrLen(d.Key.Names[0]) > 0 {
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
		return ok && m.exists() && backends.ByPort(m.decl())
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
			for _, e := range sh.elements.All() {
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
	if o.pools.layout.ByPort() {
		at = o.table.at()
	}
	for dest := range o.pools.totals.All() {
		to := o.pools.layout.Dest(dest)
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
		if !ok || !o.exists() || !backends.ByPort(o.decl()) {
			continue
		}
		for _, e := range o.inForce() {
			port, ok := backends.UDPPort(e.Key)
			if !ok || e.KeyEnd != "" && e.KeyEnd != e.Key {
				continue
			}
			for _, local := range t.unspecified() {
				dest := netip.AddrPortFrom(local, port)
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
		if o.table == t && o.pools.layout.ByPort() {
			return true
		}
	}
	return false
}

// reached notes that packets may reach destinations that they did not reach before: any, if the table
// wakes, and those of the maps by port, if rules come that look such a map up, a set of addresses
// beside one has got some, or a port leads to a chain that translates and did not before.
func (p *planner) reached(tc *tableChange) {
	switch {
	case p.repair || !tc.before || !tc.table.exists() || len(p.s.watched) == 0:
	case tc.asleep && !tc.table.dormant():
		p.rerouted = true
	case !tc.rewritten && !slices.ContainsFunc(tc.parts, func(c partChange) bool { return c.answers() || c.translates() }):
	case p.s.watchesPorts(tc.table):
		tc.table.answering(func(st conntrack.Change) { p.stale = append(p.stale, st) })
	}
}

// translates reports whether the part is a map by port, one of whose UDP ports led to a chain that did not
// translate, and leads to one that does: a NodePort whose externalTrafficPolicy is no longer Local.
func (c *partChange) translates() bool {
	o, ok := c.part.(*set)
	if !ok || !o.exists() || !o.decl().Verdict || !backends.ByPort(o.decl()) {
		return false
	}
	for id, t := range c.touched {
		e, has := o.effective(id)
		if _, udp := backends.UDPPort(e.Key); !has || !udp || !t.had || t.before.Data == e.Data {
			continue
		}
		before, known := o.table.parts[leadsTo(o.decl(), t.before.Data)].(*chain)
		after, ok := o.table.parts[leadsTo(o.decl(), e.Data)].(*chain)
		if known && ok && before.exists() && !before.leadsToBackends() && after.leadsToBackends() {
			return true
		}
	}
	return false
}

// leadsToBackends reports whether a rule of the chain looks up a map whose flows are watched.
func (o *chain) leadsToBackends() bool {
	return slices.ContainsFunc(o.merged(), func(r *slot) bool {
		return slices.ContainsFunc(appendReferences(nil, r.rule), func(id objectID) bool {
			m, ok := o.table.parts[id].(*set)
			return ok && m.pools != nil
		})
	})
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
