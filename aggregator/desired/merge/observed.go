package merge

import (
	"maps"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

const (
	// SharesApart is how many shares of a table a Record has with the fragment.
	SharesApart = 512
	// MaxUnrecorded bounds the parts that are remembered while no Record can be stored.
	MaxUnrecorded = 1 << 16
)

// tablePart is a part of a table.
type tablePart struct {
	Table nft.TableID
	ID    ObjectID
}

// unrecord notes that a Record may have something else of a part, or of a holding if o is nil.
func (s *State) unrecord(o Part) {
	s.recordedAt++
	if o != nil {
		n := o.Base()
		s.Unrecorded[tablePart{n.Table.ID, n.ID}] = struct{}{}
	}
}

// Recorded notes that the last Record has been stored.
func (s *State) Recorded() {
	clear(s.Unrecorded)
	for _, f := range s.Fragments {
		for _, h := range f.Tables {
			h.Recorded = h.Apart
		}
	}
}

// RecordVersion changes whenever Record may return something else, so that
// it need not be asked for and stored after every commit.
func (s *State) RecordVersion() uint64 { return s.recordedAt }

// scopeChanges is how many parts of a small table a scope keeps beside what it shares with earlier ones.
const scopeChanges = 64

// Scope is an immutable picture of all declarations, for compiling rules away
// from the goroutine that owns the State.
type Scope struct{ tables map[nft.TableID]*TableScope }

// Table returns the declarations of a table. It is never nil: a table that
// does not exist declares nothing.
func (s *Scope) Table(id nft.TableID) *TableScope {
	if t, ok := s.tables[id]; ok {
		return t
	}
	return &TableScope{}
}

// Set returns the declaration of a set or map of a table.
func (s *Scope) Set(id nft.TableID, name string) (*nftset.Set, bool) {
	return s.Table(id).Set(name)
}

// TableScope is the part of a Scope in one table. It is a compile.Scope.
type TableScope struct {
	// decls has a *nftobject.Chain, a *nftset.Set or an objectDecl for each part. Scopes share it.
	decls map[ObjectID]any
	// changed has the parts that differ from decls, with nil for one that is gone.
	changed map[ObjectID]any
}

var _ compile.Scope = (*TableScope)(nil)

func (t *TableScope) Decl(id ObjectID) any {
	if d, ok := t.changed[id]; ok {
		return d
	}
	return t.decls[id]
}

// Set returns the declaration of a set or map.
func (t *TableScope) Set(name string) (*nftset.Set, bool) {
	d, ok := t.Decl(SetID(name)).(*nftset.Set)
	return d, ok
}

// Chain reports whether a chain exists.
func (t *TableScope) Chain(name string) bool { return t.Decl(ChainID(name)) != nil }

// Object reports whether a named object exists.
func (t *TableScope) Object(kind nft.ObjectKind, name string) bool {
	return t.Decl(ObjectID{Kind: kind, Name: name}) != nil
}

// Flowtable reports whether a flowtable exists.
func (t *TableScope) Flowtable(name string) bool { return t.Object(KindFlowtable, name) }

// Scope returns the declarations of all that has been applied. The same Scope
// is returned until declarations change. A new one costs what changed, and now and then
// the table.
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

// scope returns the declarations, of which only these parts may differ from an earlier scope.
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
