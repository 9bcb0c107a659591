package merge

import (
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired/backends"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Pools indexes a map's UDP backends in watched shares. It tells whether a backend that left one
// slot is still in another.
type Pools struct {
	Layout backends.Layout
	// Backends counts elements by packed destination and backend, Totals by destination.
	Backends, Totals packed.Counts
}

func (p *Pools) change(c *elementChange) {
	if p == nil {
		return
	}
	had, has := c.had && c.from.Flows(), c.has && c.to.Flows()
	if had && has && c.before.Data == c.after.Data {
		return
	}
	if had {
		p.Count(&c.before, -1)
	}
	if has {
		p.Count(&c.after, +1)
	}
}

func (p *Pools) Count(e *nftset.Element, by int) {
	b, ok := p.Layout.Backend(e)
	if !ok {
		return
	}
	p.Backends.Add(b.Dest, b.Data, by)
	p.Totals.Add(b.Dest, "", by)
}

// index updates a set's pools; anew makes them again.
func (o *Set) index(d *derived, anew bool) {
	o.Table.indexAddresses(o)
	watched := slices.ContainsFunc(o.Shares, func(sh *SetShare) bool { return sh.Conntrack })
	if watched && o.Pools != nil && !anew {
		return
	}
	o.Pools = nil
	delete(d.Watched, o)
	if !watched {
		return
	}
	l, ok := backends.NewLayout(o.Decl())
	if !ok {
		return
	}
	d.Watched[o] = struct{}{}
	o.Pools = &Pools{Layout: l, Backends: packed.NewCounts(l.BackendLen(), 0), Totals: packed.NewCounts(l.DestLen(), 0)}
	for i, sh := range o.Shares {
		if !sh.Flows() {
			continue
		}
		for id, e := range sh.Elements.All() {
			d.Looked.Keys++
			if i == 0 || o.Winner(id) == sh {
				o.Pools.Count(&e, +1)
			}
		}
	}
}

// indexAddresses keeps Addresses, the sets of addresses. A destination without an address, such as
// a NodePort, answers at local addresses, and at addresses in a set that a rule looks up beside a
// map by port. A flow from before its address was in the set was not translated, and becomes stale.
func (t *Table) indexAddresses(o *Set) {
	delete(t.Addresses, o)
	if !o.Exists() {
		return
	}
	if d := o.Decl(); !d.Map && len(d.Key.Names) == 1 && backends.AddrLen(d.Key.Names[0]) > 0 {
		if t.Addresses == nil {
			t.Addresses = map[*Set]struct{}{}
		}
		t.Addresses[o] = struct{}{}
	}
}
