package desired

import (
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Plan is an ordered list of kernel operations, with their consequences for
// flows and affinity maps.
type Plan struct {
	Ops []kernel.Op
	// Origin has for each op the update that it comes from, as an index into the
	// successful changes since the last Accept or Rollback. It is -1 in a
	// Diff, and for an op that no update has caused. No op has elements of two updates.
	Origin []int
	// Ahead is the number of the first Ops that are committed in a transaction of their own,
	// before the others. They add what nothing in force refers to: the chains that new
	// elements of maps lead to. A packet takes the generation of the rules when it enters a
	// hook, and that of the elements at each lookup (nft_do_chain in Linux): in one
	// transaction it could follow a new element to a chain that is still empty for it.
	Ahead  int
	Counts Counts
	// Stale are the UDP flows to flush after the commit, ordered by address
	// and port.
	Stale []conntrack.Change
	// Rerouted is true if packets may reach destinations with watched flows that they did not reach
	// before: compare all flows with Live after the commit.
	Rerouted bool
	// Deserted are those of Stale whose destination has no backend any more, in
	// the same order. After the commit the State does not know them.
	Deserted []conntrack.Change
	// Purges are the affinity maps to look into after the commit, ordered by table
	// and name: the last rule went that made some of their entries.
	Purges []Purge
}

// Counts says how much a plan changes. Tables, Chains, Sets and Objects count
// additions and deletions together. An object that is deleted and added again counts
// twice, a replaced element once as added and once as deleted. Content that is
// deleted together with its set or table does not count.
type Counts struct {
	Tables, Chains, Sets, Objects  int
	RulesAdded, RulesDeleted       int
	ElementsAdded, ElementsDeleted int
}

// Plan returns the ops that bring the kernel from the last accepted state to
// the present one. Commit it, then call Accept or Rollback, without an Apply in
// between. The ops share memory with the state and must not be changed.
func (s *State) Plan() *Plan {
	p := newPlanner(s)
	slices.SortFunc(s.dirty, func(a, b *table) int { return compareTables(a.id, b.id) })
	for _, t := range s.dirty {
		slices.SortFunc(t.dirtyParts, compareParts)
		tc := tableChange{table: t, before: t.kernel, asleep: t.asleep, parts: make([]partChange, 0, len(t.dirtyParts))}
		for _, o := range t.dirtyParts {
			tc.parts = append(tc.parts, changeOf(o))
		}
		p.table(&tc)
	}
	return p.finish()
}

// tableChange is a table in which something may differ from the kernel.
type tableChange struct {
	table *table
	// before is true if the kernel has the table, asleep if the table is dormant
	// there.
	before, asleep bool
	parts          []partChange
	// ahead is true if what is new can be added in a transaction before the others.
	ahead bool
	// forced has the parts that are made anew: whatever refers to them must be
	// deleted before and added again after. forcedBy is the last update that made one
	// of them so.
	forced   map[objectID]bool
	forcedBy int
	// rewritten is true if rules come that look up maps by port.
	rewritten bool
}

// partChange is a part with what the kernel has of it.
type partChange struct {
	part
	// before is the declaration in the kernel, nil if it is not there.
	before any
	// rules are those that the kernel has in a chain.
	rules []*slot
	// touched has every key of a set that may differ. For a new set only its origins
	// matter.
	touched map[string]touch
}

// changeOf returns a part with what the kernel has of it as of the last Accept.
func changeOf(o part) partChange {
	c := partChange{part: o, before: o.base().kernel}
	switch o := o.(type) {
	case *chain:
		c.rules = o.rules
	case *set:
		c.touched = o.touched
	}
	return c
}

// anew reports whether an existing part must be made anew.
func (c *partChange) anew() bool { return c.before != nil && c.exists() && c.remade(c.before) }

// updated reports whether the declaration of an existing chain changes. Other parts
// stay as they are, or are made anew.
func (c *partChange) updated() bool {
	before, ok := c.before.(*nftobject.Chain)
	return ok && c.exists() && !equalChain(before, c.declared().(*nftobject.Chain))
}

// phase is the position of an op in the batch. An op that needs an object comes
// after the object is added and before it is deleted. All deletions come first,
// so that an object can be deleted and made anew.
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
	// The kernel accepts no base chain after a change of the table's flags.
	changeTables
	deleteTables
	phases
)

// planner collects ops by phase.
type planner struct {
	s       *State
	ops     [phases][]kernel.Op
	origins [phases][]int
	// early has for each op whether it can come in a transaction before the others, adding
	// whether that is so for those that are added now, and needed whether one of them must.
	early          [phases][]bool
	adding, needed bool

	counts   Counts
	stale    []conntrack.Change
	rerouted bool
	deserted []conntrack.Change
	purges   []Purge
	decision decision
	// repair is true in a Diff, in which differences have no origin.
	repair bool
	// remade is the update that causes a whole table to be made anew. It is the
	// origin of ops that no update has caused itself; -1 otherwise.
	remade int
}

// decision is what a plan has decided besides its ops, for Accept.
type decision struct {
	// handles are those of rules that are added, and of rules that stay in the
	// place of equal ones.
	handles []assignment
	// orders are the rules of the changed chains as they are then.
	orders map[*chain][]*slot
	// unstaged are the staged sets that have become a part of the state, or are deleted.
	unstaged []stagedID
}

type assignment struct {
	slot   *slot
	handle *kernel.Handle
}

func newPlanner(s *State) *planner {
	return &planner{s: s, remade: -1}
}

// add appends an op to a phase.
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

// finish joins the phases. The decision is for the next Accept.
func (p *planner) finish() *Plan {
	plan := &Plan{Counts: p.counts, Stale: p.stale, Rerouted: p.rerouted, Deserted: p.deserted, Purges: p.purges}
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
	p.s.plan = &p.decision
	return plan
}

// join appends the ops for which want is true, phase by phase.
func (p *planner) join(plan *Plan, want func(early bool) bool) {
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
	p.s.work.Objects += uint64(len(tc.parts))
	for i := range tc.parts {
		if o, ok := tc.parts[i].part.(*set); ok {
			p.staleFlows(o, &tc.parts[i])
		}
	}
	switch {
	case !t.exists() && !tc.before:
		return
	case !t.exists():
		p.counts.Tables++
		p.add(deleteTables, t.origin, kernel.DeleteTable{Table: t.id})
		p.unstageTable(t.id)
		return
	case !tc.before:
		p.counts.Tables++
		p.dropStagedTable(t)
		p.add(addTables, t.origin, kernel.AddTable{Table: t.id, Comment: t.comment(), Dormant: t.dormant()})
	case tc.asleep != t.dormant():
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

// content plans the ops for everything in a table.
func (p *planner) content(tc *tableChange) {
	defer func() { p.adding = false }()
	for i := range tc.parts {
		c := &tc.parts[i]
		p.adding = tc.ahead && p.unseen(c)
		var del, add phase
		var counter *int
		switch c.part.(type) {
		case *chain:
			del, add, counter = deleteChains, addChains, &p.counts.Chains
		case *set:
			del, add, counter = deleteSets, addSets, &p.counts.Sets
		case *object:
			del, add, counter = deleteObjects, addObjects, &p.counts.Objects
		default:
			panic(fmt.Sprintf("desired: part %T is unknown", c.part))
		}
		added := c.exists() && (c.before == nil || c.anew())
		if c.before != nil && (added || !c.exists()) {
			*counter++
			for _, op := range c.removal(c.before) {
				p.add(del, c.base().origin, op)
			}
		}
		if o, ok := c.part.(*set); ok && added && p.staged(o, c) {
			*counter++
			continue
		}
		if added || c.updated() {
			*counter++
			p.add(add, c.base().origin, c.addition())
		}
		switch o := c.part.(type) {
		case *chain:
			p.rules(tc, o, c)
		case *set:
			p.elements(tc, o, c, added)
		}
	}
}

// unseen reports whether a part is new, and no packet can meet it before something else
// leads to it.
func (p *planner) unseen(c *partChange) bool {
	if c.before != nil || !c.exists() {
		return false
	}
	switch o := c.part.(type) {
	case *chain:
		return o.declared().(*nftobject.Chain).Base == nil
	case *set:
		// Perhaps there is one to delete first.
		return p.s.staged[stagedID{o.table.id, o.id.Name}] == nil
	default:
		return true
	}
}

// force finds the parts of a table that are made anew, and adds what refers
// to them to the change.
func (p *planner) force(tc *tableChange) {
	leads := false
	for i := range tc.parts {
		if c := &tc.parts[i]; c.anew() {
			if tc.forced == nil {
				tc.forced = map[objectID]bool{}
			}
			n := c.base()
			tc.forced[n.id] = true
			tc.forcedBy = max(tc.forcedBy, n.origin)
			leads = leads || n.id.Kind != kindSet
		}
	}
	if tc.forced == nil {
		return
	}
	for _, o := range tc.table.sortedParts() {
		p.s.work.Objects++
		// The dirty ones are in the change.
		if o.base().dirty || !o.exists() {
			continue
		}
		switch o := o.(type) {
		case *chain:
			if slices.ContainsFunc(o.rules, tc.forcesRule) {
				p.s.mark(o)
				tc.parts = append(tc.parts, changeOf(o))
			}
		case *set:
			if leads && packed.HasTargets(o.decl()) {
				tc.parts = append(tc.parts, changeOf(o))
			}
		}
	}
}

// forcesRule reports whether a rule refers to a part that is made anew.
func (tc *tableChange) forcesRule(r *slot) bool {
	return tc.forced != nil && slices.ContainsFunc(appendReferences(nil, r.rule), func(id objectID) bool { return tc.forced[id] })
}

// forcesElement reports whether a map's element leads to a part that is made
// anew.
func (tc *tableChange) forcesElement(d *nftset.Set, e *nftset.Element) bool {
	return tc.forced != nil && tc.forced[leadsTo(d, e.Data)]
}

// ruleOrigin is the update that a change of a rule comes from.
func (tc *tableChange) ruleOrigin(o *chain, r *slot) int {
	if origin, ok := o.origins[r.owner]; ok {
		return origin
	}
	if o.origin < 0 || tc.forcesRule(r) {
		return tc.forcedBy
	}
	return o.origin
}

// rules plans the ops that turn the rules that the kernel has in a chain into the
// merged ones.
func (p *planner) rules(tc *tableChange, o *chain, cc *partChange) {
	t, after := tc.table.id, o.merged()
	p.s.work.Rules += uint64(len(cc.rules) + len(after))
	keep := func(r *slot) bool { return !tc.forcesRule(r) }
	if cc.anew() {
		keep = func(*slot) bool { return false }
		after = slices.DeleteFunc(after, func(r *slot) bool { return r.adopted })
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
			p.add(deleteRules, tc.ruleOrigin(o, r), kernel.DeleteRule{Table: t, Chain: o.id.Name, Handle: r.handle})
		}
	}
	var prev *kernel.Handle
	for i, r := range after {
		if b := match[i]; b >= 0 {
			prev = cc.rules[b].handle
			if p.repair {
				r.handle = prev
			} else if r.handle != prev {
				p.decision.handles = append(p.decision.handles, assignment{r, prev})
			}
			continue
		}
		h := &kernel.Handle{}
		p.counts.RulesAdded++
		tc.rewritten = tc.rewritten || tc.before && o.table.looksUpPorts(r)
		p.add(addRules, tc.ruleOrigin(o, r), kernel.AddRule{Table: t, Chain: o.id.Name, Rule: r.rule, Owner: r.owner, After: prev, Handle: h})
		p.decision.handles = append(p.decision.handles, assignment{r, h})
		prev = h
	}
	if p.decision.orders == nil {
		p.decision.orders = map[*chain][]*slot{}
	}
	p.decision.orders[o] = after
}
