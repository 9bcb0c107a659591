package desired

import (
	"maps"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// Diff returns the plan that brings the kernel, as dumped, to the present
// state, whatever was committed before. It adopts the dumped handles of the
// rules that stay. Commit the plan and call Accept, even if the plan is empty.
// If the commit fails, dump and Diff again: Rollback alone does not know what
// the kernel holds.
// Elements with a timeout that are missing from an existing set have timed out.
// They are not added again unless they are stated again, and withdrawing them
// needs no op. Elements that packets have put into dynamic sets stay. Adopted
// rules that are missing cannot be added again.
func (s *State) Diff(dump []kernel.Table) *Plan {
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
		s.diffObjects(&tc, d)
		s.diffChains(&tc, d)
		s.diffSets(&tc, d)
		p.table(&tc)
	}
	return p.finish()
}

func (s *State) diffObjects(tc *tableChange, d *kernel.Table) {
	dumped := map[objectID]objectDecl{}
	for _, decl := range objectsOf(d) {
		dumped[decl.id()] = decl
		tc.table.object(decl.id())
	}
	for _, id := range sortedObjects(tc.table.objects) {
		o := tc.table.objects[id]
		s.markObject(o)
		tc.objects = append(tc.objects, objectChange{object: o, before: dumped[id]})
	}
}

func (s *State) diffChains(tc *tableChange, d *kernel.Table) {
	dumped := map[string]*kernel.Chain{}
	for i := range d.Chains {
		if decl := d.Chains[i].Decl; decl != nil {
			dumped[decl.Name] = &d.Chains[i]
			tc.table.chain(decl.Name)
		}
	}
	for _, name := range sortedKeys(tc.table.chains) {
		o := tc.table.chains[name]
		s.markChain(o)
		cc := chainChange{chain: o}
		if c, ok := dumped[name]; ok {
			adopted := map[uint64]*slot{}
			for _, r := range o.merged() {
				if r.adopted && r.handle != nil {
					adopted[r.handle.N] = r
				}
			}
			cc.before = c.Decl
			for i := range c.Rules {
				cc.rules = append(cc.rules, redumped(d.ID.Family, &c.Rules[i], adopted))
			}
		}
		tc.chains = append(tc.chains, cc)
	}
}

// redumped returns the slot of a dumped rule: the slot of an adopted rule if it
// is the same rule.
func redumped(family nft.Family, d *kernel.Rule, adopted map[uint64]*slot) *slot {
	r := dumpedRule(family, d)
	if d.Handle != nil {
		if have, ok := adopted[d.Handle.N]; ok && have.id() == r.id() {
			have.handle = d.Handle
			return have
		}
	}
	return r
}

func (s *State) diffSets(tc *tableChange, d *kernel.Table) {
	dumped := map[string]*kernel.Set{}
	for i := range d.Sets {
		if decl := d.Sets[i].Decl; decl != nil {
			dumped[decl.Name] = &d.Sets[i]
			tc.table.set(decl.Name)
		}
	}
	for _, name := range sortedKeys(tc.table.sets) {
		o := tc.table.sets[name]
		s.markSet(o)
		sc := setChange{set: o}
		if ds, ok := dumped[name]; ok {
			sc.before = ds.Decl
			sc.touched = s.diffElements(o, ds)
		}
		tc.sets = append(tc.sets, sc)
	}
}

// diffElements returns the keys in which a dumped set differs from the merge,
// with the kernel's elements.
func (s *State) diffElements(o *set, d *kernel.Set) map[string]touch {
	touched := map[string]touch{}
	o.lapsed = nil
	if !o.exists() || !d.Decl.Equal(o.decl()) {
		// The set goes, with all that is in it.
		for i := range d.Elements {
			touched[elementID(d.Decl, &d.Elements[i])] = touch{before: d.Elements[i], had: true, origin: -1}
		}
		return touched
	}
	decl := o.decl()
	there := make(map[string]struct{}, len(d.Elements))
	for i := range d.Elements {
		s.work.Keys++
		e := &d.Elements[i]
		id := elementID(decl, e)
		there[id] = struct{}{}
		want, ok := o.effective(id)
		if ok && sameElement(decl, e, &want) || dynamic(decl) {
			continue
		}
		touched[id] = touch{before: *e, had: true, origin: -1}
	}
	for _, sh := range o.shares {
		if sh.passive {
			continue
		}
		for id, e := range sh.elements.all() {
			s.work.Keys++
			if _, ok := there[id]; ok || o.winner(id) != sh {
				continue
			}
			// One that is new since the last Accept has not been there yet.
			if _, pending := o.touched[id]; pending || o.kernel == nil || timeout(decl, &e) == 0 {
				touched[id] = touch{origin: -1}
				continue
			}
			if o.lapsed == nil {
				o.lapsed = map[string]struct{}{}
			}
			o.lapsed[strings.Clone(id)] = struct{}{}
		}
	}
	return touched
}
