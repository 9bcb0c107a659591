package desired

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
)

// State is the merge of all accepted fragments, with the difference to the last
// accepted state, which the kernel has.
type State struct {
	tables    map[nft.TableID]*table
	fragments map[Key]*fragment
	// unclaimed holds what the kernel had at Adopt and no fragment is known for.
	unclaimed *fragment

	// undo undoes everything since the last Accept, the newest last.
	undo []func()
	// origin is the number of changes since the last Accept or Rollback, and so
	// the index of the one that is being applied.
	origin int
	// serial counts changes for ever; objects remember it to be queued once.
	serial uint64
	// dirty are the tables with something touched since the last Accept.
	dirty []*table
	// checks are what the running change must find in order when it is done.
	checks []check
	// plan is the decision of the last Plan or Diff; nil if the state has changed
	// since.
	plan *decision

	expiries expiries
	// fixedFlags is set by SetFixedFlags.
	fixedFlags bool
	// staged are the sets that the kernel gets before their updates.
	staged map[stagedID]*Staged

	scope      *Scope
	scopeDirty map[nft.TableID]map[objectID]struct{}
	recordedAt uint64
	// unrecorded are the parts of which a Record may have something else since Recorded.
	unrecorded map[tablePart]struct{}
	// lifetimes has the lifetime as of the last Accept of the fragments whose
	// lifetime may have changed since. It is LifetimeUnspecified for new fragments.
	lifetimes map[Key]Lifetime
	work      Work

	// shadowed counts shadowed elements; shaded are the fragments whose count
	// may have changed since the last TakeShadowChanges.
	shadowed int
	shaded   map[*fragment]struct{}
	// usage is what each publisher holds, without publishers that hold nothing.
	usage map[string]Usage

	// outdated are the parts for evaluate, in round number round. order and steps are
	// its scratch.
	outdated, order []part
	steps           []step
	round           uint64
	// resized are the sets in which lookups may take another time.
	resized []*set
	// grown are the base chains whose price has grown in the running change, attached those that
	// it has added to a hook. paths changes with every price and hook of a base chain.
	grown, attached []*chain
	paths           uint64
	// hooks has the base chains of each hook.
	hooks map[hook]map[*chain]struct{}
	// watched are the maps whose flows are watched: those with pools.
	watched map[*set]struct{}
}

// Work counts what the state has looked at since New. Tests use it to prove that an
// update costs what it changes.
type Work struct {
	// Keys counts elements examined by Apply, Plan and Rollback; Rules counts
	// rules examined; Objects counts chains and sets, those that a Scope or a Record
	// is made of included.
	Keys, Rules, Objects uint64
}

// fragment is the identity of one fragment and everything that it holds.
type fragment struct {
	key Key
	// owner is the key as rules carry it, or "" for the unclaimed fragment.
	owner string
	identity
	// unclaimed is true for the one fragment that stands for content without a
	// fragment.
	unclaimed bool
	tables    map[nft.TableID]*holding
	// holds counts the rules and elements in all tables, shadowed the elements
	// whose data another's hides.
	holds    Usage
	shadowed int
}

// holding is everything that a fragment holds in one table.
type holding struct {
	fragment *fragment
	table    *table
	comment  string
	shares   map[objectID]share
	// apart says that a Record keeps the shares apart from the fragment, recorded that it has
	// been stored with all of them.
	apart, recorded bool
	// dormant says that the fragment wants the table dormant.
	dormant dormancy
}

// table is the merge in one table.
type table struct {
	id       nft.TableID
	parts    map[objectID]part
	holdings []*holding
	sets     cost.Sets
	// kernel is true when the table is in the kernel as of the last Accept, and
	// asleep when it is dormant there.
	kernel, asleep bool
	origin         int
	// addresses are its sets of addresses.
	addresses map[*set]struct{}

	dirty      bool
	dirtyParts []part
}

// New returns the state in which nothing is desired and nothing committed.
func New() *State {
	return &State{
		tables:     map[nft.TableID]*table{},
		fragments:  map[Key]*fragment{},
		unclaimed:  &fragment{unclaimed: true, tables: map[nft.TableID]*holding{}},
		scope:      &Scope{tables: map[nft.TableID]*TableScope{}},
		scopeDirty: map[nft.TableID]map[objectID]struct{}{},
		unrecorded: map[tablePart]struct{}{},
		lifetimes:  map[Key]Lifetime{},
		shaded:     map[*fragment]struct{}{},
		usage:      map[string]Usage{},
		staged:     map[stagedID]*Staged{},
		hooks:      map[hook]map[*chain]struct{}{},
		watched:    map[*set]struct{}{},
	}
}

// Work returns the work counters.
func (s *State) Work() Work { return s.work }

// Accept says that the kernel has carried out the ops of the last Plan or Diff:
// the present state is the kernel's from now on. The state must not have
// changed since.
func (s *State) Accept() {
	if s.plan == nil {
		s.Plan()
	}
	for _, a := range s.plan.handles {
		a.slot.handle = a.handle
	}
	for _, id := range s.plan.unstaged {
		delete(s.staged, id)
	}
	for _, t := range s.dirty {
		t.kernel, t.asleep = t.exists(), t.dormant()
		for _, o := range t.dirtyParts {
			o.accept(s.plan)
			o.base().kernel = nil
			if o.exists() {
				o.base().kernel = o.declared()
			}
		}
	}
	s.acceptLifetimes()
	s.acceptTimes()
	s.reset()
}

// Rollback undoes every change since the last Accept.
func (s *State) Rollback() {
	s.undoTo(0)
	s.reset()
}

// reset forgets the journal, and the objects that are neither desired nor in
// the kernel.
func (s *State) reset() {
	for _, t := range s.dirty {
		t.origin = -1
		for _, o := range t.dirtyParts {
			n := o.base()
			n.dirty, n.origin = false, -1
			o.clearChanges()
			if !o.exists() && n.refs == 0 {
				delete(t.parts, n.id)
				t.sets.Named -= count(n.id.Kind == kindSet)
			}
		}
		clear(t.dirtyParts)
		t.dirty, t.dirtyParts = false, t.dirtyParts[:0]
		if !t.exists() && s.tables[t.id] == t {
			delete(s.tables, t.id)
		}
	}
	s.dirty = s.dirty[:0]
	clear(s.lifetimes)
	s.expiries.stated = nil
	s.undo = nil
	s.origin = 0
	s.plan = nil
}

// undoTo undoes the changes after the first mark ones, the newest first.
func (s *State) undoTo(mark int) {
	for i := len(s.undo) - 1; i >= mark; i-- {
		s.undo[i]()
	}
	clear(s.undo[mark:])
	s.undo = s.undo[:mark]
	s.plan = nil
}

// table returns a table, made when it is new.
func (s *State) table(id nft.TableID) *table {
	t, ok := s.tables[id]
	if !ok {
		t = &table{id: id, parts: map[objectID]part{}}
		s.tables[id] = t
	}
	s.markTable(t)
	return t
}

func (s *State) markTable(t *table) {
	if !t.dirty {
		t.dirty = true
		s.dirty = append(s.dirty, t)
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
func assignRecorded[T comparable](s *State, o part, at *T, v T) {
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
	if *origin != s.origin {
		assign(s, origin, s.origin)
	}
}

// declared notes that the declaration of a part differs from the last Scope, and perhaps
// from the last Record.
func (s *State) declared(o part) {
	n := o.base()
	s.scopeChanges(n.table.id)[n.id] = struct{}{}
	s.unrecord(o)
}

// scopeChanges returns the parts of a table that differ from the last Scope.
func (s *State) scopeChanges(id nft.TableID) map[objectID]struct{} {
	if s.scopeDirty[id] == nil {
		s.scopeDirty[id] = map[objectID]struct{}{}
	}
	return s.scopeDirty[id]
}

func compareTables(a, b nft.TableID) int {
	return cmp.Or(cmp.Compare(a.Family, b.Family), strings.Compare(a.Name, b.Name))
}

func (t *table) exists() bool { return len(t.holdings) > 0 }

// inOrder returns the holdings in the order of their fragments.
func (t *table) inOrder() []*holding {
	return slices.SortedFunc(slices.Values(t.holdings), func(a, b *holding) int { return a.fragment.compare(b.fragment) })
}

// comment returns the comment of the first fragment that gives one.
func (t *table) comment() string {
	for _, h := range t.inOrder() {
		if h.comment != "" {
			return h.comment
		}
	}
	return ""
}

// compare orders fragments by precedence. The unclaimed fragment comes last.
func (f *fragment) compare(g *fragment) int {
	return cmp.Or(count(f.unclaimed)-count(g.unclaimed), cmp.Compare(f.priority, g.priority), f.key.Compare(g.key))
}

func newFragment(key Key, id identity) *fragment {
	return &fragment{key: key, owner: key.String(), identity: id, tables: map[nft.TableID]*holding{}}
}

// String names the fragment in messages.
func (f *fragment) String() string {
	switch {
	case f.unclaimed:
		return "no fragment (unclaimed since the restart)"
	case f.adopted:
		return "fragment " + f.key.String() + " (committed before the restart, not yet published again)"
	default:
		return "fragment " + f.key.String()
	}
}

// setFragment registers a fragment, or removes it if f is nil.
func (s *State) setFragment(key Key, f *fragment) {
	s.noteLifetime(key)
	do(s, func(f *fragment) { s.writeFragment(key, f) }, f, s.fragments[key])
}

func (s *State) writeFragment(key Key, f *fragment) {
	s.recordedAt++
	if old := s.fragments[key]; old != nil {
		s.charge(old, Usage{Fragments: 1}, -1)
	}
	if f == nil {
		delete(s.fragments, key)
		return
	}
	s.charge(f, Usage{Fragments: 1}, +1)
	s.fragments[key] = f
}

// hold returns a fragment's holding in a table, made when it is new.
func (s *State) hold(f *fragment, id nft.TableID) *holding {
	if h, ok := f.tables[id]; ok {
		return h
	}
	t := s.table(id)
	s.stamp(&t.origin)
	h := &holding{fragment: f, table: t, shares: map[objectID]share{}}
	s.writeHolding(h, true)
	s.undo = append(s.undo, func() { s.writeHolding(h, false) })
	return h
}

// release removes an empty holding.
func (s *State) release(h *holding) {
	s.markTable(h.table)
	s.stamp(&h.table.origin)
	s.writeHolding(h, false)
	s.undo = append(s.undo, func() { s.writeHolding(h, true) })
}

func (s *State) writeHolding(h *holding, in bool) {
	t := h.table
	s.scopeChanges(t.id)
	s.recordedAt++
	if in {
		h.fragment.tables[t.id] = h
		t.holdings = append(t.holdings, h)
		return
	}
	delete(h.fragment.tables, t.id)
	i := slices.Index(t.holdings, h)
	t.holdings = slices.Delete(t.holdings, i, i+1)
}
