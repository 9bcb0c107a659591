package merge

import (
	"cmp"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
)

// Existing returns a table, or an empty one.
func (s *State) Existing(id nft.TableID) *Table { return cmp.Or(s.Tables[id], &Table{}) }

// Find returns an existing part of type O.
func Find[O Part](s *State, table nft.TableID, id ObjectID) (O, bool) {
	o, ok := s.Existing(table).Parts[id].(O)
	return o, ok && o.Exists()
}

// Decision is the result of a plan besides its ops, for Accept.
type Decision struct {
	// Handles are for added rules, and for rules in the place of equal ones.
	Handles []Assignment
	// Orders are the rules of changed chains after the commit.
	Orders map[*Chain][]*Slot
	// Unstaged sets become part of the state, or are deleted.
	Unstaged []StagedID
}

type Assignment struct {
	Slot   *Slot
	Handle *kernel.Handle
}

// SetFixedFlags says that the kernel refuses to change a table's flags, as from Linux 6.9 while a
// process owns it. Then a change of Dormant remakes the table.
func (s *State) SetFixedFlags(fixed bool) { s.FixedFlags = fixed }

// State is the merge of all accepted fragments, and the difference to the kernel's state, the last
// Accept.
type State struct {
	Tables    map[nft.TableID]*Table
	Fragments map[desired.Key]*Fragment
	// Unclaimed holds content of adopt.Dump without a known fragment.
	Unclaimed *Fragment

	undo []func()
	// Origin is the number of changes since Accept or Rollback, the index of the running one.
	Origin int
	// serial never restarts.
	serial uint64
	Dirty  []*Table
	checks []check
	// Plan is nil after a change of the state.
	Plan *Decision

	Expiries   expiries
	FixedFlags bool
	// Staged sets reach the kernel before their updates.
	Staged map[StagedID]*Staged

	scope      *Scope
	scopeDirty map[nft.TableID]map[ObjectID]struct{}
	recordedAt uint64
	// Unrecorded parts may differ in a Record since Recorded.
	Unrecorded map[tablePart]struct{}
	// Lifetimes has possibly different lifetimes as of Accept, LifetimeUnspecified for new
	// fragments.
	Lifetimes map[desired.Key]desired.Lifetime
	Looked    desired.Work

	shadowed int
	shaded   map[*Fragment]struct{}
	// Held is by publisher, without empty usage.
	Held map[string]desired.Usage

	Paths Paths
	// Watched are the maps with Pools.
	Watched map[*Set]struct{}
}

// Table is the merge in one table.
type Table struct {
	ID       nft.TableID
	Parts    map[ObjectID]Part
	Holdings []*Holding
	Sets     cost.Sets
	// Kernel and Asleep (dormant there) are as of the last Accept.
	Kernel, Asleep bool
	Origin         int
	Addresses      map[*Set]struct{}

	dirty      bool
	DirtyParts []Part
}

// New returns an empty state.
func New() *State {
	return &State{
		Tables:     map[nft.TableID]*Table{},
		Fragments:  map[desired.Key]*Fragment{},
		Unclaimed:  &Fragment{Unclaimed: true, Tables: map[nft.TableID]*Holding{}},
		scope:      &Scope{tables: map[nft.TableID]*TableScope{}},
		scopeDirty: map[nft.TableID]map[ObjectID]struct{}{},
		Unrecorded: map[tablePart]struct{}{},
		Lifetimes:  map[desired.Key]desired.Lifetime{},
		shaded:     map[*Fragment]struct{}{},
		Held:       map[string]desired.Usage{},
		Staged:     map[StagedID]*Staged{},
		Watched:    map[*Set]struct{}{},
		Paths:      Paths{Hooks: map[Hook]map[*Chain]struct{}{}},
	}
}

// Work returns the work counters.
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

// Reset forgets the journal, and parts neither desired nor in the kernel.
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

func (s *State) undoTo(mark int) {
	for i := len(s.undo) - 1; i >= mark; i-- {
		s.undo[i]()
	}
	clear(s.undo[mark:])
	s.undo = s.undo[:mark]
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

func (s *State) MarkTable(t *Table) {
	if !t.dirty {
		t.dirty = true
		s.Dirty = append(s.Dirty, t)
	}
}

func assign[T any](s *State, at *T, v T) {
	old := *at
	*at = v
	s.undo = append(s.undo, func() { *at = old })
}

// assignRecorded is assign for a value in a Record: of a part, or of a holding if o is nil.
func assignRecorded[T comparable](s *State, o Part, at *T, v T) {
	if *at != v {
		do(s, func(v T) {
			*at = v
			s.unrecord(o)
		}, v, *at)
	}
}

// do makes a change with write, which also undoes it.
func do[T any](s *State, write func(T), v, old T) {
	write(v)
	s.undo = append(s.undo, func() { write(old) })
}

func enter[K comparable, V any](s *State, m map[K]V, key K, v V, has bool) {
	old, had := m[key]
	s.undo = append(s.undo, func() { setKey(m, key, old, had) })
	setKey(m, key, v, has)
}

// setKey removes the key if has is false.
func setKey[K comparable, V any](m map[K]V, key K, v V, has bool) {
	if has {
		m[key] = v
	} else {
		delete(m, key)
	}
}

func (s *State) stamp(origin *int) {
	if *origin != s.Origin {
		assign(s, origin, s.Origin)
	}
}

func (s *State) declared(o Part) {
	n := o.Base()
	s.scopeChanges(n.Table.ID)[n.ID] = struct{}{}
	s.unrecord(o)
}

func (s *State) scopeChanges(id nft.TableID) map[ObjectID]struct{} {
	if s.scopeDirty[id] == nil {
		s.scopeDirty[id] = map[ObjectID]struct{}{}
	}
	return s.scopeDirty[id]
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

// Len returns the number of fragments.
func (s *State) Len() int { return len(s.Fragments) }
