package desired

import (
	"slices"

	"github.com/weft-proxy/weft/nft/kernel"
)

// FixedFlags says whether the kernel refuses to change the flags of a table that is
// there, as it does (from Linux 6.9) while a process owns it. Such a table is made
// anew when it goes to sleep or wakes.
func (s *State) FixedFlags(fixed bool) { s.fixedFlags = fixed }

// reflag brings the flags of a table that is there to what they should be; it
// returns true when it has made all of the table anew.
func (p *planner) reflag(tc *tableChange) bool {
	t := tc.table
	p.counts.Tables++
	add := kernel.AddTable{Table: t.id, Comment: t.comment(), Dormant: t.dormant()}
	if !p.s.fixedFlags && !tc.changesBases() || p.repair || !t.known() {
		p.add(changeTables, t.origin, add)
		return false
	}
	p.add(dropTables, t.origin, kernel.DeleteTable{Table: t.id})
	p.add(addTables, t.origin, add)
	p.remade = t.origin
	p.content(p.s.whole(t))
	p.remade = -1
	return true
}

// changesBases reports whether base chains go or change, which the kernel takes in
// no batch that changes the flags of their table.
func (tc *tableChange) changesBases() bool {
	return slices.ContainsFunc(tc.chains, func(cc chainChange) bool {
		o := cc.chain
		return cc.before != nil && cc.before.Base != nil && (!o.exists() || !equalChain(cc.before, o.decl()))
	})
}

// known reports whether all rules of the table are known in words, so that they can
// be added again.
func (t *table) known() bool {
	for _, o := range t.chains {
		if slices.ContainsFunc(o.merged(), func(r *slot) bool { return r.adopted }) {
			return false
		}
	}
	return true
}

// whole is everything in a table, as a change from nothing.
func (s *State) whole(t *table) *tableChange {
	tc := &tableChange{table: t, forcedBy: -1}
	for _, id := range sortedObjects(t.objects) {
		s.markObject(t.objects[id])
		tc.objects = append(tc.objects, objectChange{object: t.objects[id]})
	}
	for _, name := range sortedKeys(t.chains) {
		s.markChain(t.chains[name])
		tc.chains = append(tc.chains, chainChange{chain: t.chains[name]})
	}
	for _, name := range sortedKeys(t.sets) {
		o := t.sets[name]
		s.markSet(o)
		tc.sets = append(tc.sets, setChange{set: o, touched: o.touched})
	}
	return tc
}
