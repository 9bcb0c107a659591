package planner

import (
	"maps"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

const (
	// minStagedTimeout must be long against staging (seconds for a million elements): a timeout
	// starts when the kernel gets the element.
	minStagedTimeout = time.Minute
	// StagedSetCost is the price of adding the first set to a table, in elements.
	StagedSetCost = 8
	// fewElements take no time in any set.
	fewElements = 128
)

// Unstaged reports whether an update has many elements in new sets and maps: Stage may help.
func Unstaged(s *merge.State, u *desired.Update) bool {
	n := 0
	for i := range u.Tables {
		t := s.Tables[u.Tables[i].Table]
		for j := range u.Tables[i].PutSets {
			put := &u.Tables[i].PutSets[j]
			if t == nil || t.Parts[merge.SetID(put.Decl.Name)] == nil {
				n += 1 + len(put.Elements)
			}
		}
	}
	return n >= fewElements
}

// Stage undoes the only change since the last Accept, the Apply of u, and returns its new sets and
// maps to stage. It returns no set if the kernel adds all in less than least, or the last element
// of a set in more than most.
//
// Send them with StageOps and StageSent, then apply and commit u: the plan has no ops for complete
// sets. The state forgets a staged set if another update in between declares or deletes it.
func Stage(s *merge.State, u *desired.Update, least, most time.Duration) []*merge.Staged {
	defer s.Rollback()
	var sets []*merge.Staged
	var total time.Duration
	for i := range u.Tables {
		tu := &u.Tables[i]
		t, ok := s.Tables[tu.Table]
		if !ok || !t.Kernel && t.Dormant() || s.FixedFlags && t.Asleep != t.Dormant() {
			continue
		}
		for j := range tu.PutSets {
			o, ok := t.Parts[merge.SetID(tu.PutSets[j].Decl.Name)].(*merge.Set)
			if !ok || !stageable(s, o) {
				continue
			}
			sh := o.Shares[0]
			sets = append(sets, &merge.Staged{ID: merge.StagedID{Table: t.ID, Name: o.ID.Name}, Comment: t.Comment(), Decl: sh.Decl, Elements: sh.Fresh, Stated: sh.Fresh, Packed: sh.Elements})
			if o.Merge != nil {
				sets[len(sets)-1].Elements = o.Sorted()
			}
			if sh.Content.Change(sh.Decl) > most {
				return nil
			}
			total += t.Sets.New() + sh.Content.Whole(sh.Decl)
		}
	}
	if total < least {
		return nil
	}
	for _, st := range sets {
		s.Staged[st.ID] = st
	}
	return sets
}

// stageable excludes maps with targets, which would have to exist before.
func stageable(s *merge.State, o *merge.Set) bool {
	if o.Kernel != nil || len(o.Shares) != 1 || o.Shares[0].Fresh == nil && o.Shares[0].Elements.Len() > 0 || len(o.Touched) > 0 || s.Staged[merge.StagedID{Table: o.Table.ID, Name: o.ID.Name}] != nil {
		return false
	}
	d := o.Decl()
	brief := func(timeout time.Duration) bool { return timeout != 0 && timeout < minStagedTimeout }
	if packed.HasTargets(d) || packed.Dynamic(d) || brief(d.Timeout) {
		return false
	}
	return !slices.ContainsFunc(o.Shares[0].Fresh, func(e nftset.Element) bool { return brief(e.Timeout) })
}

// StageOps returns the ops for about n more elements, or as many as the kernel probably adds within
// a time. It returns no op for complete or forgotten sets. After the commit call StageSent, after a
// failure Unstage.
func StageOps(s *merge.State, sets []*merge.Staged, n int, within time.Duration) (ops []kernel.Op) {
	for _, st := range sets {
		if n <= 0 {
			break
		}
		if st.Complete() || s.Staged[st.ID] != st {
			continue
		}
		if !st.Begun {
			t, sets := s.Tables[st.ID.Table], cost.Sets{Named: len(s.Staged)}
			if t != nil {
				sets.Named += t.Sets.Named + t.Sets.Anonymous
			}
			n -= StagedSetCost * int(sets.New()/cost.Sets{}.New())
			if t == nil || !t.Kernel {
				ops = append(ops, kernel.AddTable{Table: st.ID.Table, Comment: st.Comment})
			}
			ops = append(ops, kernel.AddSet{Table: st.ID.Table, Set: st.Decl})
		}
		if next := st.Elements[st.Sent:min(st.Sent+max(n, 1), len(st.Elements))]; len(next) > 0 {
			// Allow as much time again as the transaction takes for present elements.
			fit := st.Content.Fit(st.Decl, next, max(within, 2*st.Content.Change(st.Decl)))
			if n -= len(next); fit < len(next) {
				n, next = 0, next[:fit]
			}
			ops = append(ops, kernel.AddElements{Table: st.ID.Table, Set: st.Decl, Elements: next, First: st.Sent == 0})
		}
	}
	return ops
}

// StageSent accepts the committed ops of StageOps.
func StageSent(s *merge.State, ops []kernel.Op) {
	for _, op := range ops {
		switch op := op.(type) {
		case kernel.AddSet:
			s.Staged[merge.StagedID{Table: op.Table, Name: op.Set.Name}].Begun = true
		case kernel.AddElements:
			st := s.Staged[merge.StagedID{Table: op.Table, Name: op.Set.Name}]
			for i := range op.Elements {
				st.Content.Add(st.Decl, &op.Elements[i], 1)
			}
			st.Sent += len(op.Elements)
		}
	}
}

// Unstage forgets staged sets, and returns the ops to remove them from the kernel.
func Unstage(s *merge.State, sets []*merge.Staged) []kernel.Op {
	var ops []kernel.Op
	tables := map[nft.TableID]bool{}
	for _, st := range sets {
		if s.Staged[st.ID] != st {
			continue
		}
		delete(s.Staged, st.ID)
		if st.Begun {
			ops = append(ops, kernel.DeleteSet{Table: st.ID.Table, Name: st.ID.Name})
			tables[st.ID.Table] = true
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(tables), desired.CompareTables) {
		if t := s.Tables[id]; (t == nil || !t.Kernel) && stagedIn(s, id) == nil {
			ops = append(ops, kernel.DeleteTable{Table: id})
		}
	}
	return ops
}

func stagedIn(s *merge.State, id nft.TableID) *merge.Staged {
	for _, st := range s.Staged {
		if st.ID.Table == id && st.Begun {
			return st
		}
	}
	return nil
}

// staged reports whether the kernel has a complete new set, and deletes any other with the name.
// After Accept the set is not staged any more.
func (p *planner) staged(o *merge.Set, c *partChange) bool {
	st := p.s.Staged[merge.StagedID{Table: o.Table.ID, Name: o.ID.Name}]
	if st == nil || slices.Contains(p.decision.Unstaged, st.ID) {
		return false
	}
	p.decision.Unstaged = append(p.decision.Unstaged, st.ID)
	if !st.Begun {
		return false
	}
	if st.Is(o, c.touched) {
		p.counts.ElementsAdded += len(st.Elements)
		return true
	}
	p.add(deleteSets, o.Origin, kernel.DeleteSet{Table: st.ID.Table, Name: st.ID.Name})
	return false
}

func (p *planner) unstageTable(id nft.TableID) {
	for _, st := range p.s.Staged {
		if st.ID.Table == id && !slices.Contains(p.decision.Unstaged, st.ID) {
			p.decision.Unstaged = append(p.decision.Unstaged, st.ID)
		}
	}
}

// dropStagedTable deletes a table that only staged sets need, if the update's table is dormant or
// has another comment: the kernel cannot change a comment.
func (p *planner) dropStagedTable(t *merge.Table) {
	if st := stagedIn(p.s, t.ID); st != nil && (t.Dormant() || st.Comment != t.Comment()) {
		p.add(dropTables, t.Origin, kernel.DeleteTable{Table: t.ID})
		p.unstageTable(t.ID)
	}
}

// withoutStaged leaves out intact staged sets, and forgets the others: a Diff removes them.
func withoutStaged(s *merge.State, dump []kernel.Table) []kernel.Table {
	if len(s.Staged) == 0 {
		return dump
	}
	intact := map[merge.StagedID]bool{}
	out := make([]kernel.Table, 0, len(dump))
	for _, d := range dump {
		n := len(d.Sets)
		d.Sets = slices.DeleteFunc(slices.Clone(d.Sets), func(ds kernel.Set) bool {
			if ds.Decl == nil {
				return false
			}
			id := merge.StagedID{Table: d.ID, Name: ds.Decl.Name}
			if st := s.Staged[id]; st != nil && st.Intact(&ds) {
				intact[id] = true
			}
			return intact[id]
		})
		if t := s.Tables[d.ID]; len(d.Sets) == n || len(adopt.DumpedParts(&d)) > 0 || t != nil && t.Exists() {
			out = append(out, d)
		}
	}
	maps.DeleteFunc(s.Staged, func(id merge.StagedID, st *merge.Staged) bool { return st.Begun && !intact[id] })
	return out
}
