package desired

import (
	"slices"

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
	// successful changes since the last Accept or Rollback. It is -1 in a Diff. No
	// op has elements of two updates.
	Origin []int
	Counts Counts
	// Stale are the UDP flows to flush after the commit, ordered by address
	// and port.
	Stale []conntrack.Change
	// Deserted are those of Stale whose destination has no backend any more, in
	// the same order. After the commit the State does not know them.
	Deserted []conntrack.Change
	// Purges are the affinity maps to look into after the commit, ordered by table
	// and name: the last rule went that made some of their entries.
	Purges []Purge
}

// Counts says how much a plan changes. An object that is made anew counts
// twice, a replaced element once as added and once as deleted. Content that is
// deleted together with its set or table does not count.
type Counts struct {
	Tables, Chains, Sets, Objects  int
	RulesAdded, RulesDeleted       int
	ElementsAdded, ElementsDeleted int
}

// Empty reports whether there is nothing to commit.
func (p *Plan) Empty() bool { return len(p.Ops) == 0 }

// Plan returns the ops that bring the kernel from the last accepted state to
// the present one. Commit it, then call Accept or Rollback, without an Apply in
// between. The ops share memory with the state and must not be changed.
func (s *State) Plan() *Plan {
	p := newPlanner(s)
	slices.SortFunc(s.dirty, func(a, b *table) int { return compareTables(a.id, b.id) })
	for _, t := range s.dirty {
		slices.SortFunc(t.dirtyChains, func(a, b *chain) int { return a.compare(&b.node) })
		slices.SortFunc(t.dirtySets, func(a, b *set) int { return a.compare(&b.node) })
		slices.SortFunc(t.dirtyObjects, func(a, b *object) int { return a.compare(&b.node) })
		tc := tableChange{table: t, before: t.kernel, asleep: t.asleep}
		for _, o := range t.dirtyChains {
			tc.chains = append(tc.chains, chainChange{chain: o, before: o.kernel, rules: o.rules})
		}
		for _, o := range t.dirtySets {
			tc.sets = append(tc.sets, setChange{set: o, before: o.kernel, touched: o.touched})
		}
		for _, o := range t.dirtyObjects {
			tc.objects = append(tc.objects, objectChange{object: o, before: o.kernel})
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
	chains         []chainChange
	sets           []setChange
	objects        []objectChange
	// forced has the objects that are made anew: whatever refers to them must be
	// deleted before and added again after. forcedBy is the last update that made one
	// of them so.
	forced   map[Place]bool
	forcedBy int
}

// chainChange is a chain with what the kernel has of it.
type chainChange struct {
	chain  *chain
	before *nftobject.Chain
	rules  []*slot
}

// setChange is a set with what the kernel has of it. touched has every key that
// may differ. For a new set only its origins matter.
type setChange struct {
	set     *set
	before  *nftset.Set
	touched map[string]touch
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
	s        *State
	ops      [phases][]kernel.Op
	origins  [phases][]int
	counts   Counts
	stale    []conntrack.Change
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
}

// finish joins the phases. The decision is for the next Accept.
func (p *planner) finish() *Plan {
	plan := &Plan{Counts: p.counts, Stale: p.stale, Deserted: p.deserted, Purges: p.purges}
	n := 0
	for _, ops := range p.ops {
		n += len(ops)
	}
	plan.Ops, plan.Origin = make([]kernel.Op, 0, n), make([]int, 0, n)
	for ph := range p.ops {
		plan.Ops = append(plan.Ops, p.ops[ph]...)
		plan.Origin = append(plan.Origin, p.origins[ph]...)
	}
	slices.SortFunc(plan.Stale, compareStale)
	slices.SortFunc(plan.Deserted, compareStale)
	slices.SortFunc(plan.Purges, comparePurges)
	p.s.plan = &p.decision
	return plan
}

func (p *planner) table(tc *tableChange) {
	t := tc.table
	p.s.work.Objects += uint64(len(tc.chains) + len(tc.sets) + len(tc.objects))
	for i := range tc.sets {
		sc := &tc.sets[i]
		sc.set.stale(sc.before, sc.touched, func(st conntrack.Change, deserted bool) {
			p.stale = append(p.stale, st)
			if deserted {
				p.deserted = append(p.deserted, st)
			}
		})
	}
	switch {
	case !t.exists() && !tc.before:
		return
	case !t.exists():
		p.counts.Tables++
		p.add(deleteTables, t.origin, kernel.DeleteTable{Table: t.id})
		return
	case !tc.before:
		p.counts.Tables++
		p.add(addTables, t.origin, kernel.AddTable{Table: t.id, Comment: t.comment(), Dormant: t.dormant()})
	case tc.asleep != t.dormant():
		if p.reflag(tc) {
			return
		}
	}
	p.force(tc)
	p.content(tc)
}

// content plans the ops for everything in a table.
func (p *planner) content(tc *tableChange) {
	for i := range tc.objects {
		p.object(tc.table.id, &tc.objects[i])
	}
	for i := range tc.sets {
		p.set(tc, &tc.sets[i])
	}
	for i := range tc.chains {
		p.chain(tc, &tc.chains[i])
	}
}

// force finds the objects of a table that are made anew, and adds what refers
// to them to the change.
func (p *planner) force(tc *tableChange) {
	for i := range tc.sets {
		if sc := &tc.sets[i]; sc.anew() {
			tc.anew(sc.set.at(), sc.set.origin)
		}
	}
	leads := false
	for i := range tc.chains {
		if cc := &tc.chains[i]; cc.anew() {
			tc.anew(cc.chain.at(), cc.chain.origin)
			leads = true
		}
	}
	for i := range tc.objects {
		if oc := &tc.objects[i]; oc.anew() {
			tc.anew(oc.object.at(), oc.object.origin)
			leads = true
		}
	}
	if tc.forced == nil {
		return
	}
	chains := map[*chain]bool{}
	for i := range tc.chains {
		chains[tc.chains[i].chain] = true
	}
	for _, name := range sortedKeys(tc.table.chains) {
		o := tc.table.chains[name]
		p.s.work.Objects++
		if !chains[o] && o.exists() && slices.ContainsFunc(o.rules, tc.forcesRule) {
			p.s.markChain(o)
			tc.chains = append(tc.chains, chainChange{chain: o, before: o.kernel, rules: o.rules})
		}
	}
	if leads {
		p.forceMaps(tc)
	}
}

// anew records that an object is made anew by an update.
func (tc *tableChange) anew(at Place, origin int) {
	if tc.forced == nil {
		tc.forced = map[Place]bool{}
	}
	tc.forced[at] = true
	tc.forcedBy = max(tc.forcedBy, origin)
}

// forceMaps adds the maps that may lead to objects that are made anew.
func (p *planner) forceMaps(tc *tableChange) {
	sets := map[*set]bool{}
	for i := range tc.sets {
		sets[tc.sets[i].set] = true
	}
	for _, name := range sortedKeys(tc.table.sets) {
		o := tc.table.sets[name]
		p.s.work.Objects++
		if !sets[o] && o.exists() && hasTargets(o.decl()) {
			tc.sets = append(tc.sets, setChange{set: o, before: o.kernel, touched: o.touched})
		}
	}
}

// forcesRule reports whether a rule refers to an object that is made anew.
func (tc *tableChange) forcesRule(r *slot) bool {
	if tc.forced == nil {
		return false
	}
	forces := func(kind string) func(string) bool {
		return func(name string) bool { return tc.forced[Place{Table: tc.table.id, Kind: kind, Name: name}] }
	}
	return slices.ContainsFunc(r.rule.Sets, forces("set")) || slices.ContainsFunc(r.rule.Chains, forces("chain")) ||
		slices.ContainsFunc(ruleObjects(r.rule), func(id objectID) bool { return forces(string(id.Kind))(id.Name) })
}

// forcesElement reports whether a map's element leads to an object that is made
// anew.
func (tc *tableChange) forcesElement(d *nftset.Set, e *nftset.Element) bool {
	if tc.forced == nil || !hasTargets(d) {
		return false
	}
	at := Place{Table: tc.table.id, Kind: "chain", Name: verdictChain(e.Data)}
	if id := leadsToObject(d, e.Data); id.Name != "" {
		at.Kind, at.Name = string(id.Kind), id.Name
	}
	return tc.forced[at]
}

// anew reports whether an existing object must be made anew.
func (cc *chainChange) anew() bool {
	return cc.before != nil && cc.chain.exists() && !updatable(cc.before, cc.chain.decl())
}

func (sc *setChange) anew() bool {
	return sc.before != nil && sc.set.exists() && sc.before != sc.set.decl() && !sc.before.Equal(sc.set.decl())
}

func (p *planner) chain(tc *tableChange, cc *chainChange) {
	o, t := cc.chain, tc.table.id
	switch {
	case !o.exists():
		if cc.before == nil {
			return
		}
		p.counts.Chains++
		p.rules(tc, cc, nil)
		p.add(deleteChains, o.origin, kernel.DeleteChain{Table: t, Name: o.name})
		return
	case cc.anew():
		p.counts.Chains += 2
		p.add(deleteChains, o.origin, kernel.DeleteChain{Table: t, Name: o.name})
		p.add(addChains, o.origin, kernel.AddChain{Table: t, Chain: o.decl()})
	case cc.before == nil || !equalChain(cc.before, o.decl()):
		p.counts.Chains++
		p.add(addChains, o.origin, kernel.AddChain{Table: t, Chain: o.decl()})
	}
	p.rules(tc, cc, o.merged())
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

// rules plans the ops that turn a chain's rules into after.
func (p *planner) rules(tc *tableChange, cc *chainChange, after []*slot) {
	o, t := cc.chain, tc.table.id
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
			p.add(deleteRules, tc.ruleOrigin(o, r), kernel.DeleteRule{Table: t, Chain: o.name, Handle: r.handle})
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
		p.add(addRules, tc.ruleOrigin(o, r), kernel.AddRule{Table: t, Chain: o.name, Rule: r.rule, Owner: r.owner, After: prev, Handle: h})
		p.decision.handles = append(p.decision.handles, assignment{r, h})
		prev = h
	}
	if p.decision.orders == nil {
		p.decision.orders = map[*chain][]*slot{}
	}
	p.decision.orders[o] = after
}
