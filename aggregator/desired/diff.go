package desired

import (
	"maps"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
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
func (s *State) Diff(dump []kernel.Table) *Plan {
	dump = s.withoutStaged(dump)
	p := newPlanner(s)
	p.repair = true
	dumped := map[nft.TableID]*kernel.Table{}
	for i := range dump {
		dumped[dump[i].ID] = &dump[i]
		s.table(dump[i].ID)
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.tables), compareTables) {
		t := s.table(id)
		d, before := dumped[id]
		if !before {
			d = &kernel.Table{ID: id}
		}
		tc := tableChange{table: t, before: before, asleep: d.Dormant, forcedBy: -1}
		s.diffTable(&tc, d)
		p.table(&tc)
	}
	return p.finish()
}

// diffTable adds all parts of a table to the change, with what is in the dump.
func (s *State) diffTable(tc *tableChange, d *kernel.Table) {
	dumped := map[part]*dumpedPart{}
	parts := dumpedParts(d)
	for i := range parts {
		dumped[tc.table.part(parts[i].id)] = &parts[i]
	}
	for _, o := range tc.table.sortedParts() {
		s.mark(o)
		c := partChange{part: o}
		if d, ok := dumped[o]; ok {
			c.before = d.decl
			switch o := o.(type) {
			case *chain:
				c.rules = o.redumped(d.chain)
			case *set:
				c.touched = s.diffElements(o, d.set)
			}
		}
		tc.parts = append(tc.parts, c)
	}
}

// redumped returns the slots of the rules of a dumped chain. Adopted rules that
// are still there keep their slots.
func (o *chain) redumped(d *kernel.Chain) []*slot {
	adopted := map[uint64]*slot{}
	for _, r := range o.merged() {
		if r.adopted && r.handle != nil {
			adopted[r.handle.N] = r
		}
	}
	var rules []*slot
	for i := range d.Rules {
		r := dumpedRule(o.table.id.Family, &d.Rules[i])
		if r.handle != nil {
			if have, ok := adopted[r.handle.N]; ok && have.id() == r.id() {
				have.handle = r.handle
				r = have
			}
		}
		rules = append(rules, r)
	}
	return rules
}

// diffElements returns the keys in which a dumped set differs from the merge,
// with the kernel's elements.
func (s *State) diffElements(o *set, d *kernel.Set) map[string]touch {
	touched := map[string]touch{}
	if !o.exists() || !d.Decl.Equal(o.decl()) {
		// The set goes, with all that is in it.
		for i := range d.Elements {
			touched[packed.ID(d.Decl, &d.Elements[i])] = touch{before: d.Elements[i], had: true, origin: -1}
		}
		return touched
	}
	decl := o.decl()
	there := make(map[string]struct{}, len(d.Elements))
	for i := range d.Elements {
		s.work.Keys++
		e := &d.Elements[i]
		id := packed.ID(decl, e)
		there[id] = struct{}{}
		want, sh, ok := o.wanted(id)
		if ok && packed.Same(decl, e, &want) && !s.lags(sh, id, e.Expires()) || packed.Dynamic(decl) {
			continue
		}
		touched[id] = touch{before: *e, had: true, due: s.deadline(e.Expires()), origin: -1}
	}
	for id := range o.inForce() {
		s.work.Keys++
		if _, ok := there[id]; !ok {
			touched[id] = touch{origin: -1}
		}
	}
	return touched
}
