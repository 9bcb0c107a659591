package desired

import (
	"slices"

	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
)

// SetFixedFlags says whether the kernel refuses to change the flags of an existing
// table, as it does (from Linux 6.9) while a process owns the table. If it does, a
// table is deleted and added again when it becomes dormant or ceases to be.
func (s *State) SetFixedFlags(fixed bool) { s.fixedFlags = fixed }

// reflag plans the ops that change the flags of an existing table. It returns
// true if it has made the whole table anew.
func (p *planner) reflag(tc *tableChange) bool {
	t := tc.table
	p.counts.Tables++
	add := kernel.AddTable{Table: t.id, Comment: t.comment(), Dormant: t.dormant()}
	if !p.s.fixedFlags && !tc.changesBases() || p.repair || !t.known() {
		p.add(changeTables, t.origin, add)
		return false
	}
	p.add(dropTables, t.origin, kernel.DeleteTable{Table: t.id})
	p.unstageTable(t.id)
	p.add(addTables, t.origin, add)
	p.remade = t.origin
	p.content(p.s.whole(t))
	p.remade = -1
	return true
}

// changesBases reports whether base chains are deleted or changed. The kernel
// refuses that in a batch that changes the flags of their table.
func (tc *tableChange) changesBases() bool {
	return slices.ContainsFunc(tc.parts, func(c partChange) bool {
		before, ok := c.before.(*nftobject.Chain)
		return ok && before.Base != nil && (!c.exists() || c.updated())
	})
}

// known reports whether the text of all rules of the table is known, so that
// they can be added again.
func (t *table) known() bool {
	for _, p := range t.parts {
		if o, ok := p.(*chain); ok && slices.ContainsFunc(o.merged(), func(r *slot) bool { return r.adopted }) {
			return false
		}
	}
	return true
}

// whole returns everything in a table, as a change from nothing.
func (s *State) whole(t *table) *tableChange {
	tc := &tableChange{table: t, forcedBy: -1}
	for _, o := range t.sortedParts() {
		s.mark(o)
		c := changeOf(o)
		c.before, c.rules = nil, nil
		tc.parts = append(tc.parts, c)
	}
	return tc
}
