package merge

import (
	"cmp"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
)

func (s *State) Existing(id nft.TableID) *Table { return cmp.Or(s.Tables[id], &Table{}) }

// Find returns an existing part of type O.
func Find[O Part](s *State, table nft.TableID, id ObjectID) (O, bool) {
	o, ok := s.Existing(table).Parts[id].(O)
	return o, ok && o.Exists()
}

// Decision is the result of a plan besides its ops, for Accept.
type Decision struct {
	// Handles are for added rules, and for rules that take the place of equal ones in the kernel.
	Handles []Assignment
	// Orders are the rules of changed chains after the commit.
	Orders map[*Chain][]*Slot
	// Unstaged are the staged sets that Accept forgets: the update has brought them, or the plan
	// deletes them.
	Unstaged []StagedID
}

type Assignment struct {
	Slot   *Slot
	Handle *kernel.Handle
}

// State is the merge of all accepted fragments, and its difference from the kernel's state as of
// the last Accept.
type State struct {
	Tables    map[nft.TableID]*Table
	Fragments map[desired.Key]*Fragment
	// Unclaimed holds content of adopt.Dump without a known fragment.
	Unclaimed *Fragment

	journal
	derived
	// Plan has the decisions of the last plan, nil after a change of the state.
	Plan *Decision

	Expiries expiries
	// FixedFlags says that the kernel refuses to change a table's flags, as from Linux 6.9 while a
	// process owns it. Then a change of Dormant remakes the table.
	FixedFlags bool
	// Staged sets are new sets that reach the kernel before their updates.
	Staged map[StagedID]*Staged
}

// derived follows from the shares. A write of a share updates it, and so does the inverse write:
// it needs no journal.
type derived struct {
	marks
	ledger
	observed
	Paths Paths
	// Watched are the maps with Pools.
	Watched map[*Set]struct{}
}

type Table struct {
	ID       nft.TableID
	Parts    map[ObjectID]Part
	Holdings []*Holding
	Sets     cost.Sets
	// Kernel (the kernel has the table) and Asleep (dormant there) are as of the last Accept.
	Kernel, Asleep bool
	Origin         int
	Addresses      map[*Set]struct{}

	dirty      bool
	DirtyParts []Part
}

func New() *State {
	return &State{
		Tables:    map[nft.TableID]*Table{},
		Fragments: map[desired.Key]*Fragment{},
		Unclaimed: &Fragment{Unclaimed: true, Tables: map[nft.TableID]*Holding{}},
		Staged:    map[StagedID]*Staged{},
		derived: derived{
			ledger:   ledger{Held: map[string]desired.Usage{}, shaded: map[desired.Key]struct{}{}},
			observed: newObserved(),
			Paths:    Paths{Hooks: map[Hook]map[*Chain]struct{}{}},
			Watched:  map[*Set]struct{}{},
		},
	}
}

func (s *State) Work() desired.Work {
	w := s.Looked
	w.Objects += s.Paths.evaluated
	return w
}

// Rollback undoes every change since the last Accept.
func (s *State) Rollback() {
	s.undoTo(0)
	s.Reset()
}

// Reset forgets the journal and the marks, and removes parts and tables without shares. A part
// stays while others refer to it.
func (s *State) Reset() {
	for _, t := range s.Dirty {
		t.Origin = -1
		for _, o := range t.DirtyParts {
			n := o.Base()
			n.Dirty, n.Origin = false, -1
			o.clearChanges()
			if !o.Exists() && n.Refs == 0 {
				delete(t.Parts, n.ID)
				t.Sets.Named -= Count(n.ID.Kind == KindSet)
			}
		}
		clear(t.DirtyParts)
		t.dirty, t.DirtyParts = false, t.DirtyParts[:0]
		if !t.Exists() && s.Tables[t.ID] == t {
			delete(s.Tables, t.ID)
		}
	}
	s.Dirty = s.Dirty[:0]
	clear(s.Lifetimes)
	s.Expiries.stated = nil
	s.undo = nil
	s.Origin = 0
	s.Plan = nil
}

// Table returns a table, and makes a missing one.
func (s *State) Table(id nft.TableID) *Table {
	t, ok := s.Tables[id]
	if !ok {
		t = &Table{ID: id, Parts: map[ObjectID]Part{}}
		s.Tables[id] = t
	}
	s.MarkTable(t)
	return t
}

func (t *Table) Exists() bool { return len(t.Holdings) > 0 }

// InOrder returns the holdings by fragment.
func (t *Table) InOrder() []*Holding {
	return slices.SortedFunc(slices.Values(t.Holdings), func(a, b *Holding) int { return a.Fragment.Compare(b.Fragment) })
}

// Comment returns the first comment of a fragment.
func (t *Table) Comment() string {
	for _, h := range t.InOrder() {
		if h.Comment != "" {
			return h.Comment
		}
	}
	return ""
}

// journal undoes changes since the last Accept.
type journal struct {
	undo []func()
	// Origin is the number of changes since Accept or Rollback, the index of the running one.
	Origin int
}

func (j *journal) onUndo(f func()) { j.undo = append(j.undo, f) }

func (j *journal) undoTo(mark int) {
	for i := len(j.undo) - 1; i >= mark; i-- {
		j.undo[i]()
	}
	clear(j.undo[mark:])
	j.undo = j.undo[:mark]
}

// stamp sets an origin to the running change.
func (j *journal) stamp(origin *int) {
	if *origin != j.Origin {
		assign(j, origin, j.Origin)
	}
}

func assign[T any](j *journal, at *T, v T) {
	old := *at
	*at = v
	j.onUndo(func() { *at = old })
}

// do makes a change with write, which also undoes it.
func do[T any](j *journal, write func(T), v, old T) {
	write(v)
	j.onUndo(func() { write(old) })
}

// enter puts a key into a map, or removes it if has is false, with journal.
func enter[K comparable, V any](j *journal, m map[K]V, key K, v V, has bool) {
	old, had := m[key]
	j.onUndo(func() { setKey(m, key, old, had) })
	setKey(m, key, v, has)
}

// setKey is enter without journal.
func setKey[K comparable, V any](m map[K]V, key K, v V, has bool) {
	if has {
		m[key] = v
	} else {
		delete(m, key)
	}
}

// assignRecorded assigns a value in a Record: of a part, or of a holding if o is nil.
func assignRecorded[T comparable](s *State, o Part, at *T, v T) {
	if *at != v {
		do(&s.journal, func(v T) {
			*at = v
			s.unrecord(o)
		}, v, *at)
	}
}
