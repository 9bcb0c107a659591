package desired

import (
	"maps"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Staged is a new set or map that the kernel gets before the update that declares it,
// in several transactions. No rule can refer to it before the update is applied, so
// packets do not see it.
type Staged struct {
	id stagedID
	// comment is that of the table, if the kernel does not have the table.
	comment string
	decl    *nftset.Set
	// elements are those that the kernel is to have. stated are those of the update, and packed are the
	// same for its share.
	elements, stated []nftset.Element
	packed           *packed.Elements
	// begun is true if the kernel has the set; sent counts the elements that it has, and content
	// is theirs.
	begun   bool
	sent    int
	content cost.Content
}

// stagedID names a staged set.
type stagedID struct {
	table nft.TableID
	name  string
}

const (
	// minStagedTimeout is the shortest timeout of an element in a staged set. The timeout
	// begins when the kernel gets the element, so that the time of staging, which is
	// seconds for a million elements, must not matter.
	minStagedTimeout = time.Minute
	// stagedSetCost is what the addition of a set costs to a table without others, in elements.
	stagedSetCost = 8
	// fewElements are added in no time to any set.
	fewElements = 128
)

// Unstaged reports whether Stage can return something for an update: it has sets and maps with
// many elements that do not exist.
func (s *State) Unstaged(u *Update) bool {
	n := 0
	for i := range u.Tables {
		t := s.tables[u.Tables[i].Table]
		for j := range u.Tables[i].PutSets {
			put := &u.Tables[i].PutSets[j]
			if t == nil || t.parts[setID(put.Decl.Name)] == nil {
				n += 1 + len(put.Elements)
			}
		}
	}
	return n >= fewElements
}

// Stage undoes the only change since the last Accept, the Apply of u, and returns its new
// sets and maps that can be staged. It returns none if the kernel takes less than least to add
// them, or longer than most for the last element of one.
//
// Bring them to the kernel with StageOps and StageSent. Then apply and commit u: the plan
// has no ops for sets that are complete. Other updates may be committed in between; if one
// declares or deletes a staged set, it is forgotten, and a later plan adds it as usual.
func (s *State) Stage(u *Update, least, most time.Duration) []*Staged {
	defer s.Rollback()
	var sets []*Staged
	var total time.Duration
	for i := range u.Tables {
		tu := &u.Tables[i]
		t, ok := s.tables[tu.Table]
		if !ok || !t.kernel && t.dormant() || s.fixedFlags && t.asleep != t.dormant() {
			continue
		}
		for j := range tu.PutSets {
			o, ok := t.parts[setID(tu.PutSets[j].Decl.Name)].(*set)
			if !ok || !s.stageable(o) {
				continue
			}
			sh := o.shares[0]
			sets = append(sets, &Staged{id: stagedID{t.id, o.id.Name}, comment: t.comment(), decl: sh.decl, elements: sh.fresh, stated: sh.fresh, packed: sh.elements})
			if o.merge != nil {
				sets[len(sets)-1].elements = o.sorted()
			}
			if sh.content.Change(sh.decl) > most {
				return nil
			}
			total += t.sets.New() + sh.content.Whole(sh.decl)
		}
	}
	if total < least {
		return nil
	}
	for _, st := range sets {
		s.staged[st.id] = st
	}
	return sets
}

// stageable reports whether a set that has just been applied can be staged. Maps that
// lead to chains or objects cannot, because these would have to be there first.
func (s *State) stageable(o *set) bool {
	if o.kernel != nil || len(o.shares) != 1 || o.shares[0].fresh == nil && o.shares[0].elements.Len() > 0 || len(o.touched) > 0 || s.staged[stagedID{o.table.id, o.id.Name}] != nil {
		return false
	}
	d := o.decl()
	brief := func(timeout time.Duration) bool { return timeout != 0 && timeout < minStagedTimeout }
	if packed.HasTargets(d) || packed.Dynamic(d) || brief(d.Timeout) {
		return false
	}
	return !slices.ContainsFunc(o.shares[0].fresh, func(e nftset.Element) bool { return brief(e.Timeout) })
}

// StageOps returns the ops that bring about n more elements of staged sets to the kernel, or as many
// as it probably adds within a time. It returns none if they are complete or forgotten. If the ops
// are committed, call StageSent, and otherwise Unstage.
func (s *State) StageOps(sets []*Staged, n int, within time.Duration) (ops []kernel.Op) {
	for _, st := range sets {
		if n <= 0 {
			break
		}
		if st.complete() || s.staged[st.id] != st {
			continue
		}
		if !st.begun {
			t, sets := s.tables[st.id.table], cost.Sets{Named: len(s.staged)}
			if t != nil {
				sets.Named += t.sets.Named + t.sets.Anonymous
			}
			n -= stagedSetCost * int(sets.New()/cost.Sets{}.New())
			if t == nil || !t.kernel {
				ops = append(ops, kernel.AddTable{Table: st.id.table, Comment: st.comment})
			}
			ops = append(ops, kernel.AddSet{Table: st.id.table, Set: st.decl})
		}
		if next := st.elements[st.sent:min(st.sent+max(n, 1), len(st.elements))]; len(next) > 0 {
			// What a transaction takes for what is there already is worth as much again.
			fit := st.content.Fit(st.decl, next, max(within, 2*st.content.Change(st.decl)))
			if n -= len(next); fit < len(next) {
				n, next = 0, next[:fit]
			}
			ops = append(ops, kernel.AddElements{Table: st.id.table, Set: st.decl, Elements: next, First: st.sent == 0})
		}
	}
	return ops
}

// StageSent says that the kernel has carried out the ops of StageOps.
func (s *State) StageSent(ops []kernel.Op) {
	for _, op := range ops {
		switch op := op.(type) {
		case kernel.AddSet:
			s.staged[stagedID{op.Table, op.Set.Name}].begun = true
		case kernel.AddElements:
			st := s.staged[stagedID{op.Table, op.Set.Name}]
			for i := range op.Elements {
				st.content.Add(st.decl, &op.Elements[i], 1)
			}
			st.sent += len(op.Elements)
		}
	}
}

// Unstage forgets staged sets, and returns the ops that remove them from the kernel.
func (s *State) Unstage(sets []*Staged) []kernel.Op {
	var ops []kernel.Op
	tables := map[nft.TableID]bool{}
	for _, st := range sets {
		if s.staged[st.id] != st {
			continue
		}
		delete(s.staged, st.id)
		if st.begun {
			ops = append(ops, kernel.DeleteSet{Table: st.id.table, Name: st.id.name})
			tables[st.id.table] = true
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(tables), compareTables) {
		if t := s.tables[id]; (t == nil || !t.kernel) && s.stagedIn(id) == nil {
			ops = append(ops, kernel.DeleteTable{Table: id})
		}
	}
	return ops
}

// complete reports whether the kernel has the whole set.
func (st *Staged) complete() bool { return st.begun && st.sent == len(st.elements) }

// is reports whether the kernel has what a set that is applied anew needs.
func (st *Staged) is(o *set, touched map[string]touch) bool {
	return st.complete() && len(o.shares) == 1 && len(touched) == 0 && st.decl.Equal(o.decl()) &&
		sameSlice(st.stated, o.shares[0].fresh) && (len(st.elements) > 0 || o.shares[0].elements.Len() == 0)
}

func sameSlice(a, b []nftset.Element) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// stagedIn returns a set that is staged in a table and that the kernel has, or nil.
func (s *State) stagedIn(id nft.TableID) *Staged {
	for _, st := range s.staged {
		if st.id.table == id && st.begun {
			return st
		}
	}
	return nil
}

// packed returns the packed elements of a set that is applied again after Stage, or nil.
func (s *State) packed(o *set, p *Set) *packed.Elements {
	if st := s.staged[stagedID{o.table.id, o.id.Name}]; st != nil && st.decl == p.Decl && sameSlice(st.stated, p.Elements) {
		return st.packed
	}
	return nil
}

// staged reports whether the kernel has a new set already, complete. If it has another
// set of that name, or a part of the set, that is removed first. In either case the set
// is not staged any more after Accept.
func (p *planner) staged(o *set, c *partChange) bool {
	st := p.s.staged[stagedID{o.table.id, o.id.Name}]
	if st == nil || slices.Contains(p.decision.unstaged, st.id) {
		return false
	}
	p.decision.unstaged = append(p.decision.unstaged, st.id)
	if !st.begun {
		return false
	}
	if st.is(o, c.touched) {
		p.counts.ElementsAdded += len(st.elements)
		return true
	}
	p.add(deleteSets, o.origin, kernel.DeleteSet{Table: st.id.table, Name: st.id.name})
	return false
}

// unstageTable forgets what is staged in a table that the plan deletes.
func (p *planner) unstageTable(id nft.TableID) {
	for _, st := range p.s.staged {
		if st.id.table == id && !slices.Contains(p.decision.unstaged, st.id) {
			p.decision.unstaged = append(p.decision.unstaged, st.id)
		}
	}
}

// dropStagedTable deletes a table that the kernel has only because sets are staged in it,
// if it is not what the new table is to be. The kernel cannot change a table's comment.
func (p *planner) dropStagedTable(t *table) {
	if st := p.s.stagedIn(t.id); st != nil && (t.dormant() || st.comment != t.comment()) {
		p.add(dropTables, t.origin, kernel.DeleteTable{Table: t.id})
		p.unstageTable(t.id)
	}
}

// withoutStaged returns a dump without the staged sets that are in the kernel as they
// were sent. It forgets the others, so that a Diff removes what the kernel has of them.
func (s *State) withoutStaged(dump []kernel.Table) []kernel.Table {
	if len(s.staged) == 0 {
		return dump
	}
	intact := map[stagedID]bool{}
	out := make([]kernel.Table, 0, len(dump))
	for _, d := range dump {
		n := len(d.Sets)
		d.Sets = slices.DeleteFunc(slices.Clone(d.Sets), func(ds kernel.Set) bool {
			if ds.Decl == nil {
				return false
			}
			id := stagedID{d.ID, ds.Decl.Name}
			if st := s.staged[id]; st != nil && st.intact(&ds) {
				intact[id] = true
			}
			return intact[id]
		})
		if t := s.tables[d.ID]; len(d.Sets) == n || len(dumpedParts(&d)) > 0 || t != nil && t.exists() {
			out = append(out, d)
		}
	}
	maps.DeleteFunc(s.staged, func(id stagedID, st *Staged) bool { return st.begun && !intact[id] })
	return out
}

// intact reports whether a dumped set has what was sent, and nothing else.
func (st *Staged) intact(d *kernel.Set) bool {
	if !st.begun || len(d.Elements) != st.sent || !d.Decl.Equal(st.decl) {
		return false
	}
	there := make(map[string]*nftset.Element, len(d.Elements))
	for i := range d.Elements {
		there[packed.ID(st.decl, &d.Elements[i])] = &d.Elements[i]
	}
	for i := range st.elements[:st.sent] {
		e, ok := there[packed.ID(st.decl, &st.elements[i])]
		if !ok || !packed.Same(st.decl, e, &st.elements[i]) {
			return false
		}
	}
	return true
}
