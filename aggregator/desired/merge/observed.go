package merge

import (
	"maps"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

const (
	// SharesApart bounds the shares of a table that a Record keeps with the fragment.
	SharesApart = 512
	// MaxUnrecorded bounds the remembered parts while no Record can be stored; beyond, the next
	// Record has all.
	MaxUnrecorded = 1 << 16
)

type tablePart struct {
	Table nft.TableID
	ID    ObjectID
}

// observed has the changes for the next Scope and Record.
type observed struct {
	scope      *Scope
	scopeDirty map[nft.TableID]map[ObjectID]struct{}
	recordedAt uint64
	// Unrecorded has the parts with shares that may have changed since Recorded.
	Unrecorded map[tablePart]struct{}
	// Lifetimes has the lifetimes as of Accept of fragments that may have another now,
	// LifetimeUnspecified for new fragments.
	Lifetimes map[desired.Key]desired.Lifetime
}

func newObserved() observed {
	return observed{
		scope:      &Scope{tables: map[nft.TableID]*TableScope{}},
		scopeDirty: map[nft.TableID]map[ObjectID]struct{}{},
		Unrecorded: map[tablePart]struct{}{},
		Lifetimes:  map[desired.Key]desired.Lifetime{},
	}
}

// unrecord notes a change for Record in a part, or in a holding if o is nil.
func (b *observed) unrecord(o Part) {
	b.recordedAt++
	if o != nil {
		n := o.Base()
		b.Unrecorded[tablePart{n.Table.ID, n.ID}] = struct{}{}
	}
}

func (b *observed) declared(o Part) {
	n := o.Base()
	b.scopeChanges(n.Table.ID)[n.ID] = struct{}{}
	b.unrecord(o)
}

func (b *observed) scopeChanges(id nft.TableID) map[ObjectID]struct{} {
	if b.scopeDirty[id] == nil {
		b.scopeDirty[id] = map[ObjectID]struct{}{}
	}
	return b.scopeDirty[id]
}

// noteLifetime remembers the lifetime of f, nil for a new fragment, before its first change.
func (b *observed) noteLifetime(key desired.Key, f *Fragment) {
	if _, ok := b.Lifetimes[key]; ok {
		return
	}
	b.Lifetimes[key] = desired.LifetimeUnspecified
	if f != nil {
		b.Lifetimes[key] = f.Lifetime
	}
}

// AcceptLifetimes changes RecordVersion if the last Record may have an earlier lifetime.
func (b *observed) AcceptLifetimes(fragments map[desired.Key]*Fragment) {
	for key, before := range b.Lifetimes {
		if f := fragments[key]; f != nil && before != desired.LifetimeUnspecified && before != f.Lifetime {
			b.recordedAt++
		}
	}
}

// Recorded notes that the last Record is stored.
func (s *State) Recorded() {
	clear(s.Unrecorded)
	for _, f := range s.Fragments {
		for _, h := range f.Tables {
			h.Recorded = h.Apart
		}
	}
}

// RecordVersion changes with the result of Record.
func (b *observed) RecordVersion() uint64 { return b.recordedAt }

// scopeChanges bounds TableScope.changed of a small table.
const scopeChanges = 64

// Scope is an immutable picture of all declarations, for any goroutine.
type Scope struct{ tables map[nft.TableID]*TableScope }

// Table returns the declarations of a table, never nil.
func (s *Scope) Table(id nft.TableID) *TableScope {
	if t, ok := s.tables[id]; ok {
		return t
	}
	return &TableScope{}
}

func (s *Scope) Set(id nft.TableID, name string) (*nftset.Set, bool) {
	return s.Table(id).Set(name)
}

// TableScope is a table's compile.Scope.
type TableScope struct {
	// decls has a *nftobject.Chain, a *nftset.Set or an ObjectDecl. Scopes share it.
	decls map[ObjectID]any
	// changed takes precedence over decls; nil is a removed part.
	changed map[ObjectID]any
}

var _ compile.Scope = (*TableScope)(nil)

func (t *TableScope) Decl(id ObjectID) any {
	if d, ok := t.changed[id]; ok {
		return d
	}
	return t.decls[id]
}

func (t *TableScope) Set(name string) (*nftset.Set, bool) {
	d, ok := t.Decl(SetID(name)).(*nftset.Set)
	return d, ok
}

func (t *TableScope) Chain(name string) bool { return t.Decl(ChainID(name)) != nil }

func (t *TableScope) Object(kind nft.ObjectKind, name string) bool {
	return t.Decl(ObjectID{Kind: kind, Name: name}) != nil
}

func (t *TableScope) Flowtable(name string) bool { return t.Object(KindFlowtable, name) }

// Scope returns all applied declarations, the same until they change. A new one costs the changes,
// sometimes the table.
func (s *State) Scope() *Scope {
	if len(s.scopeDirty) == 0 {
		return s.scope
	}
	tables := maps.Clone(s.scope.tables)
	for id, dirty := range s.scopeDirty {
		t := s.Tables[id]
		if t == nil || !t.Exists() {
			delete(tables, id)
			continue
		}
		tables[id] = t.scope(s.scope.Table(id), dirty, &s.Looked)
	}
	clear(s.scopeDirty)
	s.scope = &Scope{tables: tables}
	return s.scope
}

// scope returns the declarations of a table. Only dirty parts may differ from before.
func (t *Table) scope(before *TableScope, dirty map[ObjectID]struct{}, work *desired.Work) *TableScope {
	ts := &TableScope{decls: before.decls, changed: maps.Clone(before.changed)}
	if n := len(before.changed) + len(dirty); before.decls == nil || n > scopeChanges+len(before.decls)/8 {
		work.Objects += uint64(len(t.Parts))
		ts = &TableScope{decls: make(map[ObjectID]any, len(t.Parts))}
		for id, o := range t.Parts {
			if o.Exists() {
				ts.decls[id] = o.Declared()
			}
		}
		return ts
	}
	if ts.changed == nil {
		ts.changed = make(map[ObjectID]any, len(dirty))
	}
	work.Objects += uint64(len(dirty))
	for id := range dirty {
		ts.changed[id] = nil
		if o := t.Parts[id]; o != nil && o.Exists() {
			ts.changed[id] = o.Declared()
		}
	}
	return ts
}
