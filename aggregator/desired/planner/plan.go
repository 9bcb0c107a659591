package planner

import (
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Make returns the ops from the last accepted state to the present one. Commit them, then call
// Accept or Rollback, without an Apply in between. Do not change the ops: they share memory with
// the state.
func Make(s *merge.State) *desired.Plan {
	p := newPlanner(s)
	slices.SortFunc(s.Dirty, func(a, b *merge.Table) int { return desired.CompareTables(a.ID, b.ID) })
	for _, t := range s.Dirty {
		slices.SortFunc(t.DirtyParts, merge.CompareParts)
		tc := tableChange{table: t, before: t.Kernel, asleep: t.Asleep, parts: make([]partChange, 0, len(t.DirtyParts))}
		for _, o := range t.DirtyParts {
			tc.parts = append(tc.parts, changeOf(o))
		}
		p.table(&tc)
	}
	return p.finish()
}

// tableChange is a possibly changed table.
type tableChange struct {
	table *merge.Table
	// before and asleep (dormant) describe the kernel's table.
	before, asleep bool
	parts          []partChange
	// ahead is true if new parts can come in an earlier transaction.
	ahead bool
	// forced has the remade parts: references are deleted before and added after. forcedBy is the
	// last update that remade a part.
	forced   map[merge.ObjectID]bool
	forcedBy int
	// rewritten is true if new rules look up maps by port.
	rewritten bool
}

type partChange struct {
	merge.Part
	// before is the kernel's declaration, or nil.
	before any
	rules  []*merge.Slot
	// touched has every key that may differ. For a new set only its origins matter.
	touched map[string]merge.Touch
}

func changeOf(o merge.Part) partChange {
	c := partChange{Part: o, before: o.Base().Kernel}
	switch o := o.(type) {
	case *merge.Chain:
		c.rules = o.Rules
	case *merge.Set:
		c.touched = o.Touched
	}
	return c
}

// anew reports whether an existing part must be remade.
func (c *partChange) anew() bool { return c.before != nil && c.Exists() && c.Remade(c.before) }

// updated reports whether a chain changes in place.
func (c *partChange) updated() bool {
	before, ok := c.before.(*nftobject.Chain)
	return ok && c.Exists() && !merge.EqualChain(before, c.Declared().(*nftobject.Chain))
}

// phase is the position of an op in the batch. Parts are added before the ops on them, and deleted
// after. Deletions come first, so that a part can be remade.
type phase int

const (
	dropTables phase = iota
	addTables
	deleteRules
	deleteElements
	deleteSets
	deleteChains
	deleteObjects
	addObjects
	addSets
	addChains
	addElements
	addRules
	// changeTables follows addChains: the kernel accepts no base chain after a change of the
	// table's flags.
	changeTables
	deleteTables
	phases
)

type planner struct {
	s       *merge.State
	ops     [phases][]kernel.Op
	origins [phases][]int
	// early has for each op whether it can come in an earlier transaction, adding the value for the
	// next op. needed is true if one must.
	early          [phases][]bool
	adding, needed bool

	counts   desired.Counts
	stale    []conntrack.Stale
	rerouted bool
	deserted []conntrack.Stale
	purges   []desired.Purge
	decision merge.Decision
	// repair is true in a Diff, without origins.
	repair bool
	// remade is the update that remakes a whole table, or -1. It is the origin of ops without
	// another.
	remade int
}

func newPlanner(s *merge.State) *planner {
	return &planner{s: s, remade: -1}
}

func (p *planner) add(ph phase, origin int, op kernel.Op) {
	if p.repair {
		origin = -1
	} else if origin < 0 {
		origin = p.remade
	}
	p.ops[ph] = append(p.ops[ph], op)
	p.origins[ph] = append(p.origins[ph], origin)
	p.early[ph] = append(p.early[ph], p.adding)
}

func (p *planner) finish() *desired.Plan {
	plan := &desired.Plan{Counts: p.counts, Stale: p.stale, Rerouted: p.rerouted, Deserted: p.deserted, Purges: p.purges}
	n := 0
	for _, ops := range p.ops {
		n += len(ops)
	}
	plan.Ops, plan.Origin = make([]kernel.Op, 0, n), make([]int, 0, n)
	if p.needed {
		p.join(plan, func(early bool) bool { return early })
		plan.Ahead = len(plan.Ops)
	}
	p.join(plan, func(early bool) bool { return !early || !p.needed })
	slices.SortFunc(plan.Stale, compareStale)
	slices.SortFunc(plan.Deserted, compareStale)
	slices.SortFunc(plan.Purges, comparePurges)
	p.s.Plan = &p.decision
	return plan
}

func (p *planner) join(plan *desired.Plan, want func(early bool) bool) {
	for ph, ops := range p.ops {
		for i, op := range ops {
			if want(p.early[ph][i]) {
				plan.Ops, plan.Origin = append(plan.Ops, op), append(plan.Origin, p.origins[ph][i])
			}
		}
	}
}

func (p *planner) table(tc *tableChange) {
	t := tc.table
	p.s.Looked.Objects += uint64(len(tc.parts))
	for i := range tc.parts {
		if o, ok := tc.parts[i].Part.(*merge.Set); ok {
			p.staleFlows(o, &tc.parts[i])
		}
	}
	switch {
	case !t.Exists() && !tc.before:
		return
	case !t.Exists():
		p.counts.Tables++
		p.add(deleteTables, t.Origin, kernel.DeleteTable{Table: t.ID})
		p.unstageTable(t.ID)
		return
	case !tc.before:
		p.counts.Tables++
		p.dropStagedTable(t)
		p.add(addTables, t.Origin, kernel.AddTable{Table: t.ID, Comment: t.Comment(), Dormant: t.Dormant()})
	case tc.asleep != t.Dormant():
		if p.reflag(tc) {
			p.reached(tc)
			return
		}
	}
	p.force(tc)
	tc.ahead = tc.before && tc.forced == nil && !p.repair
	p.content(tc)
	p.reached(tc)
}

func (p *planner) content(tc *tableChange) {
	defer func() { p.adding = false }()
	for i := range tc.parts {
		c := &tc.parts[i]
		p.adding = tc.ahead && p.unseen(c)
		var del, add phase
		var counter *int
		switch c.Part.(type) {
		case *merge.Chain:
			del, add, counter = deleteChains, addChains, &p.counts.Chains
		case *merge.Set:
			del, add, counter = deleteSets, addSets, &p.counts.Sets
		case *merge.Object:
			del, add, counter = deleteObjects, addObjects, &p.counts.Objects
		default:
			panic(fmt.Sprintf("desired: part %T is unknown", c.Part))
		}
		added := c.Exists() && (c.before == nil || c.anew())
		if c.before != nil && (added || !c.Exists()) {
			*counter++
			for _, op := range c.Removal(c.before) {
				p.add(del, c.Base().Origin, op)
			}
		}
		if o, ok := c.Part.(*merge.Set); ok && added && p.staged(o, c) {
			*counter++
			continue
		}
		if added || c.updated() {
			*counter++
			p.add(add, c.Base().Origin, c.Addition())
		}
		switch o := c.Part.(type) {
		case *merge.Chain:
			p.rules(tc, o, c)
		case *merge.Set:
			p.elements(tc, o, c, added)
		}
	}
}

// unseen reports whether a part is new, and packets meet it only after another change.
func (p *planner) unseen(c *partChange) bool {
	if c.before != nil || !c.Exists() {
		return false
	}
	switch o := c.Part.(type) {
	case *merge.Chain:
		return o.Declared().(*nftobject.Chain).Base == nil
	case *merge.Set:
		// A staged set may have to be deleted first.
		return p.s.Staged[merge.StagedID{Table: o.Table.ID, Name: o.ID.Name}] == nil
	default:
		return true
	}
}

// force finds remade parts, and adds the parts that refer to them to the change.
func (p *planner) force(tc *tableChange) {
	leads := false
	for i := range tc.parts {
		if c := &tc.parts[i]; c.anew() {
			if tc.forced == nil {
				tc.forced = map[merge.ObjectID]bool{}
			}
			n := c.Base()
			tc.forced[n.ID] = true
			tc.forcedBy = max(tc.forcedBy, n.Origin)
			leads = leads || n.ID.Kind != merge.KindSet
		}
	}
	if tc.forced == nil {
		return
	}
	for _, o := range tc.table.SortedParts() {
		p.s.Looked.Objects++
		// Dirty parts are in the change.
		if o.Base().Dirty || !o.Exists() {
			continue
		}
		switch o := o.(type) {
		case *merge.Chain:
			if slices.ContainsFunc(o.Rules, tc.forcesRule) {
				p.s.Mark(o)
				tc.parts = append(tc.parts, changeOf(o))
			}
		case *merge.Set:
			if leads && packed.HasTargets(o.Decl()) {
				tc.parts = append(tc.parts, changeOf(o))
			}
		}
	}
}

func (tc *tableChange) forcesRule(r *merge.Slot) bool {
	return tc.forced != nil && slices.ContainsFunc(merge.AppendReferences(nil, r.Rule), func(id merge.ObjectID) bool { return tc.forced[id] })
}

func (tc *tableChange) forcesElement(d *nftset.Set, e *nftset.Element) bool {
	return tc.forced != nil && tc.forced[merge.LeadsTo(d, e.Data)]
}

func (tc *tableChange) ruleOrigin(o *merge.Chain, r *merge.Slot) int {
	if origin, ok := o.Origins[r.Owner]; ok {
		return origin
	}
	if o.Origin < 0 || tc.forcesRule(r) {
		return tc.forcedBy
	}
	return o.Origin
}

func (p *planner) rules(tc *tableChange, o *merge.Chain, cc *partChange) {
	t, after := tc.table.ID, o.Merged()
	p.s.Looked.Rules += uint64(len(cc.rules) + len(after))
	keep := func(r *merge.Slot) bool { return !tc.forcesRule(r) }
	if cc.anew() {
		keep = func(*merge.Slot) bool { return false }
		after = slices.DeleteFunc(after, func(r *merge.Slot) bool { return r.Adopted })
	}
	after, match := align(cc.rules, after, keep)
	kept := make([]bool, len(cc.rules))
	for _, b := range match {
		if b >= 0 {
			kept[b] = true
		}
	}
	for i, r := range cc.rules {
		if !kept[i] {
			p.counts.RulesDeleted++
			p.add(deleteRules, tc.ruleOrigin(o, r), kernel.DeleteRule{Table: t, Chain: o.ID.Name, Handle: r.Handle})
		}
	}
	var prev *kernel.Handle
	for i, r := range after {
		if b := match[i]; b >= 0 {
			prev = cc.rules[b].Handle
			if p.repair {
				r.Handle = prev
			} else if r.Handle != prev {
				p.decision.Handles = append(p.decision.Handles, merge.Assignment{Slot: r, Handle: prev})
			}
			continue
		}
		h := &kernel.Handle{}
		p.counts.RulesAdded++
		tc.rewritten = tc.rewritten || tc.before && looksUpPorts(o.Table, r)
		p.add(addRules, tc.ruleOrigin(o, r), kernel.AddRule{Table: t, Chain: o.ID.Name, Rule: r.Rule, Owner: r.Owner, After: prev, Handle: h})
		p.decision.Handles = append(p.decision.Handles, merge.Assignment{Slot: r, Handle: h})
		prev = h
	}
	if p.decision.Orders == nil {
		p.decision.Orders = map[*merge.Chain][]*merge.Slot{}
	}
	p.decision.Orders[o] = after
}

// Accept makes the state of the last Make or Diff the kernel's, after the commit. The state must
// not have changed since.
func Accept(s *merge.State) {
	if s.Plan == nil {
		Make(s)
	}
	for _, a := range s.Plan.Handles {
		a.Slot.Handle = a.Handle
	}
	for _, id := range s.Plan.Unstaged {
		delete(s.Staged, id)
	}
	for _, t := range s.Dirty {
		t.Kernel, t.Asleep = t.Exists(), t.Dormant()
		for _, o := range t.DirtyParts {
			o.Accept(s.Plan)
			o.Base().Kernel = nil
			if o.Exists() {
				o.Base().Kernel = o.Declared()
			}
		}
	}
	s.AcceptLifetimes(s.Fragments)
	s.Expiries.AcceptTimes()
	s.Reset()
}
