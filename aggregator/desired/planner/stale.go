package planner

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/backends"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// leadsElsewhere reports whether a watched map of another table has the backend: the flows can
// belong to another publisher, and are not stale.
func leadsElsewhere(s *merge.State, table *merge.Table, dest, to netip.AddrPort) bool {
	for o := range s.Watched {
		if o.Table == table {
			continue
		}
		if b, ok := o.Pools.Layout.Pack(dest, to); ok && o.Pools.Backends.Get(b.Dest, b.Data) > 0 {
			return true
		}
	}
	return false
}

// staleOf derives stale UDP flows from a change of a map that is or was watched. touched has the
// kernel's elements, packed for before (nil without a map). A deserted destination has no watched
// element any more.
func staleOf(o *merge.Set, before *nftset.Set, touched map[string]merge.Touch, add func(st conntrack.Stale, deserted bool)) {
	var old backends.Layout
	known := false
	if before != nil {
		old, known = backends.NewLayout(before)
	}
	now := o.Pools
	switch {
	case now == nil && (!o.Watched || !known):
		return
	case now == nil:
		// The last fragment with watched flows is gone.
		now = &merge.Pools{Layout: old}
	case !known || old != now.Layout:
		// The map is new, or its layout.
		untranslated(o, func(st conntrack.Stale) { add(st, false) })
		return
	}
	l := &now.Layout
	// balance counts additional elements by destination. kept are backends without watched flows.
	balance := map[string]int{}
	kept := map[backends.Backend]bool{}
	// begun destinations have a group of slots with its first backend.
	begun := map[string]bool{}
	sameLayout := o.Exists() && hasLayout(o, l)
	for id, t := range touched {
		e, sh, ok := o.Decided(id)
		if !ok || !sameLayout {
			continue
		}
		switch b, ok := l.Backend(&e); {
		case ok && sh.Flows():
			balance[b.Dest]++
			if !t.Had && begins(o, &e) {
				begun[b.Dest] = true
			}
		case ok:
			kept[b] = true
		}
	}
	gone := map[string][]netip.AddrPort{}
	for _, t := range touched {
		b, ok := l.Backend(&t.Before)
		if !ok || !t.Had || !t.Flows {
			continue
		}
		balance[b.Dest]--
		if now.Backends.Get(b.Dest, b.Data) == 0 && !kept[b] {
			gone[b.Dest] = append(gone[b.Dest], l.AddrPort(b.Data))
		}
	}
	var at map[netip.Addr]struct{}
	for dest, more := range balance {
		to, total := l.Dest(dest), now.Totals.Get(dest, "")
		st := conntrack.Stale{Addr: to.Addr(), Port: to.Port(), Removed: compactAddrs(gone[dest]), First: total > 0 && total == more || begun[dest]}
		if st.First && l.ByPort() {
			if at == nil {
				at = addressesOf(o.Table)
			}
			st.At = at
		}
		if st.First || len(st.Removed) > 0 {
			add(st, total == 0)
		}
	}
}

// Lapsed returns the stale flows of elements that [merge.State.Expire] has removed.
func Lapsed(s *merge.State, expired []*desired.Update) (stale []conntrack.Stale) {
	for _, u := range expired {
		gone := &u.Tables[0].Elements[0]
		o, ok := merge.Find[*merge.Set](s, u.Tables[0].Table, merge.SetID(gone.Set))
		if !ok || o.Pools == nil || slices.ContainsFunc(o.Shares, func(sh *merge.SetShare) bool { return sh.Fragment.Key == u.Fragment && !sh.Flows() }) {
			continue
		}
		l := &o.Pools.Layout
		for i := range gone.Remove {
			b, ok := l.Backend(&gone.Remove[i])
			dest, to := l.Dest(b.Dest), l.AddrPort(b.Data)
			if !ok || o.Pools.Backends.Get(b.Dest, b.Data) > 0 || leadsElsewhere(s, o.Table, dest, to) {
				continue
			}
			c := conntrack.Stale{Addr: dest.Addr(), Port: dest.Port(), Removed: []netip.AddrPort{to}}
			if l.ByPort() {
				c.At = addressesOf(o.Table)
			}
			stale = append(stale, c)
		}
	}
	return stale
}

// begins reports whether an element is the first of a group of consecutive slots. A destination may
// have several groups: a NodePort with externalTrafficPolicy Local has one of all endpoints and one
// of this node's. A client of the latter is not translated without a backend.
func begins(o *merge.Set, e *nftset.Element) bool {
	key, first, ok := o.Pools.Layout.Previous(e.Key)
	if !ok || first {
		return ok
	}
	previous := nftset.Element{Key: key}
	_, _, ok = o.Decided(packed.ID(o.Decl(), &previous))
	return !ok
}

func hasLayout(o *merge.Set, l *backends.Layout) bool {
	now, ok := backends.NewLayout(o.Decl())
	return ok && now == *l
}

func compactAddrs(addrs []netip.AddrPort) []netip.AddrPort {
	slices.SortFunc(addrs, netip.AddrPort.Compare)
	return slices.Compact(addrs)
}

func compareStale(a, b conntrack.Stale) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Port, b.Port))
}

// Live returns the watched destinations with backends, ordered by address and port.
func Live(s *merge.State) []conntrack.Destination {
	all, at := map[netip.AddrPort][]netip.AddrPort{}, map[netip.Addr]struct{}{}
	for _, t := range s.Tables {
		for _, p := range t.Parts {
			o, ok := p.(*merge.Set)
			if !ok || o.Pools == nil {
				continue
			}
			l := &o.Pools.Layout
			if l.ByPort() {
				for addr := range addressesOf(t) {
					at[addr] = struct{}{}
				}
			}
			for b := range o.Pools.Backends.All() {
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

func looksUpPorts(t *merge.Table, r *merge.Slot) bool {
	return slices.ContainsFunc(merge.AppendReferences(nil, r.Rule), func(id merge.ObjectID) bool {
		m, ok := t.Parts[id].(*merge.Set)
		return ok && m.Exists() && backends.ByPort(m.Decl())
	})
}

// leadsToPorts reports whether a rule looks up a set of addresses beside a map by port.
func leadsToPorts(o *merge.Set) bool {
	both := func(r *merge.Slot) bool {
		return slices.Contains(merge.AppendReferences(nil, r.Rule), o.ID) && looksUpPorts(o.Table, r)
	}
	for c := range o.Callers {
		if from, ok := c.From.(*merge.Chain); ok && slices.ContainsFunc(from.Merged(), both) {
			return true
		}
	}
	return false
}

// addressesOf returns the single addresses in the sets that lead to destinations without an
// address. It leaves out ranges: of a range, only local addresses count.
func addressesOf(t *merge.Table) map[netip.Addr]struct{} {
	var all map[netip.Addr]struct{}
	for o := range t.Addresses {
		if !leadsToPorts(o) {
			continue
		}
		for _, sh := range o.Shares {
			for _, e := range sh.Elements.All() {
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

func untranslated(o *merge.Set, add func(conntrack.Stale)) {
	var at map[netip.Addr]struct{}
	if o.Pools.Layout.ByPort() {
		at = addressesOf(o.Table)
	}
	for dest := range o.Pools.Totals.All() {
		to := o.Pools.Layout.Dest(dest)
		add(conntrack.Stale{Addr: to.Addr(), Port: to.Port(), First: true, At: at})
	}
}

// answering adds a change for each UDP port of maps by port: untranslated flows are stale, also
// without endpoints, where new flows are rejected.
func answering(t *merge.Table, add func(conntrack.Stale)) {
	at, seen := addressesOf(t), map[netip.AddrPort]struct{}{}
	for _, p := range t.Parts {
		o, ok := p.(*merge.Set)
		if !ok || !o.Exists() || !backends.ByPort(o.Decl()) {
			continue
		}
		for _, e := range o.InForce() {
			port, ok := backends.UDPPort(e.Key)
			if !ok || e.KeyEnd != "" && e.KeyEnd != e.Key {
				continue
			}
			for _, local := range unspecified(t) {
				dest := netip.AddrPortFrom(local, port)
				if _, ok := seen[dest]; ok {
					continue
				}
				seen[dest] = struct{}{}
				add(conntrack.Stale{Addr: local, Port: dest.Port(), First: true, At: at})
			}
		}
	}
}

// unspecified returns the wildcard addresses of the table's families.
func unspecified(t *merge.Table) []netip.Addr {
	switch t.ID.Family {
	case nft.FamilyIP:
		return []netip.Addr{netip.IPv4Unspecified()}
	case nft.FamilyIP6:
		return []netip.Addr{netip.IPv6Unspecified()}
	default:
		return []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
}

func watchesPorts(s *merge.State, t *merge.Table) bool {
	for o := range s.Watched {
		if o.Table == t && o.Pools.Layout.ByPort() {
			return true
		}
	}
	return false
}

// reached notes that packets may reach new destinations: any, if a table wakes, or by port. The
// latter need rules that look such a map up, new addresses in a set beside one, or a port with a
// new translating chain.
func (p *planner) reached(tc *tableChange) {
	switch {
	case p.repair || !tc.before || !tc.table.Exists() || len(p.s.Watched) == 0:
	case tc.asleep && !tc.table.Dormant():
		p.rerouted = true
	case !tc.rewritten && !slices.ContainsFunc(tc.parts, func(c partChange) bool { return c.answers() || c.translates() }):
	case watchesPorts(p.s, tc.table):
		answering(tc.table, func(st conntrack.Stale) { p.stale = append(p.stale, st) })
	}
}

// translates reports whether a UDP port now leads to a chain that translates: a NodePort with
// externalTrafficPolicy no longer Local.
func (c *partChange) translates() bool {
	o, ok := c.Part.(*merge.Set)
	if !ok || !o.Exists() || !o.Decl().Verdict || !backends.ByPort(o.Decl()) {
		return false
	}
	for id, t := range c.touched {
		e, _, has := o.Wanted(id)
		if _, udp := backends.UDPPort(e.Key); !has || !udp || !t.Had || t.Before.Data == e.Data {
			continue
		}
		before, known := o.Table.Parts[merge.LeadsTo(o.Decl(), t.Before.Data)].(*merge.Chain)
		after, ok := o.Table.Parts[merge.LeadsTo(o.Decl(), e.Data)].(*merge.Chain)
		if known && ok && before.Exists() && !leadsToBackends(before) && leadsToBackends(after) {
			return true
		}
	}
	return false
}

func leadsToBackends(o *merge.Chain) bool {
	return slices.ContainsFunc(o.Merged(), func(r *merge.Slot) bool {
		return slices.ContainsFunc(merge.AppendReferences(nil, r.Rule), func(id merge.ObjectID) bool {
			m, ok := o.Table.Parts[id].(*merge.Set)
			return ok && m.Pools != nil
		})
	})
}

// answers reports whether the part is a set of addresses beside a map by port, and gets new ones.
func (c *partChange) answers() bool {
	o, ok := c.Part.(*merge.Set)
	if !ok {
		return false
	}
	if _, addresses := o.Table.Addresses[o]; !addresses {
		return false
	}
	for id, t := range c.touched {
		if _, _, has := o.Wanted(id); has && !t.Had {
			return leadsToPorts(o)
		}
	}
	return false
}

// Answering returns the untranslated flows to destinations without an address that are stale
// because an address or range became local. The zero Prefix is any address.
func Answering(s *merge.State, local netip.Prefix) (stale []conntrack.Stale) {
	for _, t := range s.Tables {
		if !watchesPorts(s, t) {
			continue
		}
		answering(t, func(st conntrack.Stale) {
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
