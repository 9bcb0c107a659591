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

// Diff returns the plan from a dump to the present state, and adopts the handles of rules that
// stay. Commit it and call Accept, even if it is empty. If the commit fails, dump and Diff again:
// Rollback does not know the kernel.
//
// Call Expire before: elements get their remaining time. Elements of packets and intact staged sets
// stay. Missing adopted rules cannot be added.
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

// redumped keeps the slots of adopted rules.
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
