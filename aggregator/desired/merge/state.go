package merge

import (
	"cmp"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
)

// Existing returns a table, or an empty one if there is none.
func (s *State) Existing(id nft.TableID) *Table { return cmp.Or(s.Tables[id], &Table{}) }

// Find returns a part of a table, if it exists and is of the type O.
func Find[O Part](s *State, table nft.TableID, id ObjectID) (O, bool) {
	o, ok := s.Existing(table).Parts[id].(O)
	return o, ok && o.Exists()
}

// Decision is what a plan has decided besides its ops, for Accept.
type Decision struct {
	// Handles are those of rules that are added, and of rules that stay in the
	// place of equal ones.
	Handles []Assignment
	// Orders are the rules of the changed chains as they are then.
	Orders map[*Chain][]*Slot
	// Unstaged are the staged sets that have become a part of the state, or are deleted.
	Unstaged []StagedID
}

type Assignment struct {
	Slot   *Slot
	Handle *kernel.Handle
}

// SetFixedFlags says whether the kernel refuses to change the flags of an existing
// table, as it does (from Linux 6.9) while a process owns the table. If it does, a
// table is deleted and added again when it becomes dormant or ceases to be.
func (s *State) SetFixedFlags(fixed bool) { s.FixedFlags = fixed }

// State is the merge of all accepted fragments, with the difference to the last
// accepted state, which the kernel has.
type State struct {
	Tables    map[nft.TableID]*Table
	Fragments map[desired.Key]*Fragment
	// Unclaimed holds what the kernel had at Adopt and no fragment is known for.
	Unclaimed *Fragment

	// undo undoes everything since the last Accept, the newest last.
	undo []func()
	// Origin is the number of changes since the last Accept or Rollback, and so
	// the index of the one that is being applied.
	Origin int
	// serial counts changes for ever; objects remember it to be queued once.
	serial uint64
	// Dirty are the tables with something touched since the last Accept.
	Dirty []*Table
	// checks are what the running change must find in order when it is done.
	checks []check
	// Plan is the decision of the last Plan or Diff; nil if the state has changed
	// since.
	Plan *Decision

	Expiries expiries
	// FixedFlags is set by SetFixedFlags.
	FixedFlags bool
	// Staged are the sets that the kernel gets before their updates.
	Staged map[StagedID]*Staged

	scope      *Scope
	scopeDirty map[nft.TableID]map[ObjectID]struct{}
	recordedAt uint64
	// Unrecorded are the parts of which a Record may have something else since Recorded.
	Unrecorded map[tablePart]struct{}
	// Lifetimes has the lifetime as of the last Accept of the fragments whose
	// lifetime may have changed since. It is LifetimeUnspecified for new fragments.
	Lifetimes map[desired.Key]desired.Lifetime
	Looked    desired.Work

	// shadowed counts shadowed elements; shaded are the fragments whose count
	// may have changed since the last TakeShadowChanges.
	shadowed int
	shaded   map[*Fragment]struct{}
	// Held is what each publisher holds, without publishers that hold nothing.
	Held map[string]desired.Usage

	Paths Paths
	// Watched are the maps whose flows are watched: those with pools.
	Watched map[*Set]struct{}
}

// Table is the merge in one table.
type Table struct {
	ID       nft.TableID
	Parts    map[ObjectID]Part
	Holdings []*Holding
	Sets     cost.Sets
	// Kernel is true when the table is in the kernel as of the last Accept, and
	// asleep when it is dormant there.
	Kernel, Asleep bool
	Origin         int
	// Addresses are its sets of addresses.
	Addresses map[*Set]struct{}

	dirty      bool
	DirtyParts []Part
}

// New returns the state in which nothing is desired and nothing committed.
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

// Reset forgets the journal, and the objects that are neither desired nor in
// the kernel.
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

// undoTo undoes the changes after the first mark ones, the newest first.
func (s *State) undoTo(mark int) {
	for i := len(s.undo) - 1; i >= mark; i-- {
		s.undo[i]()
	}
	clear(s.undo[mark:])
	s.undo = s.undo[:mark]
	s.Plan = nil
}

// Table returns a table, made when it is new.
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

// assign changes a value, with the journal.
func assign[T any](s *State, at *T, v T) {
	old := *at
	*at = v
	s.undo = append(s.undo, func() { *at = old })
}

// assignRecorded changes a value that a Record has of a part, or of a holding if o is nil, with
// the journal.
func assignRecorded[T comparable](s *State, o Part, at *T, v T) {
	if *at != v {
		do(s, func(v T) {
			*at = v
			s.unrecord(o)
		}, v, *at)
	}
}

// do makes a change: write sets the new value, and the old one to undo it.
func do[T any](s *State, write func(T), v, old T) {
	write(v)
	s.undo = append(s.undo, func() { write(old) })
}

// enter puts a value into a map, or removes the key if has is false, with the journal.
func enter[K comparable, V any](s *State, m map[K]V, key K, v V, has bool) {
	old, had := m[key]
	s.undo = append(s.undo, func() { setKey(m, key, old, had) })
	setKey(m, key, v, has)
}

// setKey puts a value into a map, or removes the key if has is false.
func setKey[K comparable, V any](m map[K]V, key K, v V, has bool) {
	if has {
		m[key] = v
	} else {
		delete(m, key)
	}
}

// stamp makes the running update the origin of an object's change.
func (s *State) stamp(origin *int) {
	if *origin != s.Origin {
		assign(s, origin, s.Origin)
	}
}

// declared notes that the declaration of a part differs from the last Scope, and perhaps
// from the last Record.
func (s *State) declared(o Part) {
	n := o.Base()
	s.scopeChanges(n.Table.ID)[n.ID] = struct{}{}
	s.unrecord(o)
}

// scopeChanges returns the parts of a table that differ from the last Scope.
func (s *State) scopeChanges(id nft.TableID) map[ObjectID]struct{} {
	if s.scopeDirty[id] == nil {
		s.scopeDirty[id] = map[ObjectID]struct{}{}
	}
	return s.scopeDirty[id]
}

func (t *Table) Exists() bool { return len(t.Holdings) > 0 }

// InOrder returns the holdings in the order of their fragments.
func (t *Table) InOrder() []*Holding {
	return slices.SortedFunc(slices.Values(t.Holdings), func(a, b *Holding) int { return a.Fragment.Compare(b.Fragment) })
}

// Comment returns the comment of the first fragment that gives one.
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
