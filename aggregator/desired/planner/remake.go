package planner

import (
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
)

// reflag plans a change of the flag dormant. It returns true if it has remade the whole table.
func (p *planner) reflag(tc *tableChange) bool {
	t := tc.table
	p.counts.Tables++
	add := kernel.AddTable{Table: t.ID, Comment: t.Comment(), Dormant: t.Dormant()}
	if !p.s.FixedFlags && !tc.changesBases() || p.repair || !known(t) {
		p.add(changeTables, t.Origin, add)
		return false
	}
	p.add(dropTables, t.Origin, kernel.DeleteTable{Table: t.ID})
	p.unstageTable(t.ID)
	p.add(addTables, t.Origin, add)
	p.remade = t.Origin
	p.content(whole(p.s, t))
	p.remade = -1
	return true
}

// changesBases reports whether base chains are deleted or changed: the kernel refuses this with new
// flags of the table.
func (tc *tableChange) changesBases() bool {
	return slices.ContainsFunc(tc.parts, func(c partChange) bool {
		before, ok := c.before.(*nftobject.Chain)
		return ok && before.Base != nil && (!c.Exists() || c.updated())
	})
}

// known reports whether all rules have a text to add them again.
func known(t *merge.Table) bool {
	for _, p := range t.Parts {
		if o, ok := p.(*merge.Chain); ok && slices.ContainsFunc(o.Merged(), func(r *merge.Slot) bool { return r.Adopted }) {
			return false
		}
	}
	return true
}

// whole returns a table's content as a change from an empty one.
func whole(s *merge.State, t *merge.Table) *tableChange {
	tc := &tableChange{table: t, forcedBy: -1}
	for _, o := range t.SortedParts() {
		s.Mark(o)
		c := changeOf(o)
		c.before, c.rules = nil, nil
		tc.parts = append(tc.parts, c)
	}
	return tc
}
