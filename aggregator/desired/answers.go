package desired

import (
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/conntrack"
	nftset "github.com/weft-proxy/weft/nft/set"
)

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

// leadsToPorts reports whether a rule looks up a set of addresses beside a map by port.
func (o *set) leadsToPorts() bool {
	ports := func(id objectID) bool {
		m, ok := o.table.parts[id].(*set)
		return ok && m.exists() && byPort(m.decl())
	}
	both := func(r *slot) bool {
		ids := appendReferences(nil, r.rule)
		return slices.Contains(ids, o.id) && slices.ContainsFunc(ids, ports)
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

// reached adds the flows that are stale because packets reach destinations that they did not reach
// before: rules that existed, or a chain on a hook, have changed, or a set of addresses has got some.
func (p *planner) reached(tc *tableChange) {
	if p.repair || !tc.before || !tc.table.exists() || len(p.s.watched) == 0 {
		return
	}
	all, ports := tc.rewritten || tc.asleep && !tc.table.dormant(), false
	for i := range tc.parts {
		o, ok := tc.parts[i].part.(*set)
		if _, addresses := tc.table.addresses[o]; all || !ok || !addresses {
			continue
		}
		for id, t := range tc.parts[i].touched {
			if _, has := o.effective(id); has && !t.had {
				ports = ports || o.leadsToPorts()
				break
			}
		}
	}
	for o := range p.s.watched {
		if o.table == tc.table && (all || ports && o.pools.layout.addrLen == 0) {
			o.untranslated(func(st conntrack.Change) { p.stale = append(p.stale, st) })
		}
	}
}

// Answering returns the flows that are stale because an address or range has become local: those
// to destinations without an address that were not translated. The zero Prefix is any address.
func (s *State) Answering(local netip.Prefix) (stale []conntrack.Change) {
	for o := range s.watched {
		if o.pools.layout.addrLen > 0 {
			continue
		}
		o.untranslated(func(st conntrack.Change) {
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
