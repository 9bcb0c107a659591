package planner

import (
	"maps"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// Diff returns the plan that brings the kernel, as dumped, to the present
// state, whatever was committed before. It adopts the dumped handles of the
// rules that stay. Commit the plan and call Accept, even if the plan is empty.
// If the commit fails, dump and Diff again: Rollback alone does not know what
// the kernel holds.
// Elements with a timeout get the time that is left of it. Call Expire before.
// Elements that packets have put into dynamic sets stay. Adopted
// rules that are missing cannot be added again. Staged sets stay if the kernel has them as
// they were sent; otherwise they are removed.
func Diff(s *merge.State, dump []kernel.Table) *desired.Plan {
	dump = withoutStaged(s, dump)
	p := newPlanner(s)
	p.repair = true
	dumped := map[nft.TableID]*kernel.Table{}
	for i := range dump {
		dumped[dump[i].ID] = &dump[i]
		s.Table(dump[i].ID)
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.Tables), desired.CompareTables) {
		t := s.Table(id)
		d, before := dumped[id]
		if !before {
			d = &kernel.Table{ID: id}
		}
		tc := tableChange{table: t, before: before, asleep: d.Dormant, forcedBy: -1}
		diffTable(s, &tc, d)
		p.table(&tc)
	}
	return p.finish()
}

// diffTable adds all parts of a table to the change, with what is in the dump.
func diffTable(s *merge.State, tc *tableChange, d *kernel.Table) {
	dumped := map[merge.Part]*adopt.DumpedPart{}
	parts := adopt.DumpedParts(d)
	for i := range parts {
		dumped[tc.table.Part(parts[i].ID)] = &parts[i]
	}
	for _, o := range tc.table.SortedParts() {
		s.Mark(o)
		c := partChange{Part: o}
		if d, ok := dumped[o]; ok {
			c.before = d.Decl
			switch o := o.(type) {
			case *merge.Chain:
				c.rules = redumped(o, d.Chain)
			case *merge.Set:
				c.touched = adopt.Differences(s, o, d.Set)
			}
		}
		tc.parts = append(tc.parts, c)
	}
}

// redumped returns the slots of the rules of a dumped chain. Adopted rules that
// are still there keep their slots.
func redumped(o *merge.Chain, d *kernel.Chain) []*merge.Slot {
	adopted := map[uint64]*merge.Slot{}
	for _, r := range o.Merged() {
		if r.Adopted && r.Handle != nil {
			adopted[r.Handle.N] = r
		}
	}
	var rules []*merge.Slot
	for i := range d.Rules {
		r := adopt.DumpedRule(o.Table.ID.Family, &d.Rules[i])
		if r.Handle != nil {
			if have, ok := adopted[r.Handle.N]; ok && idOf(have) == idOf(r) {
				have.Handle = r.Handle
				r = have
			}
		}
		rules = append(rules, r)
	}
	return rules
}
