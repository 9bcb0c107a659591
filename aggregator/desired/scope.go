package desired

import (
	"maps"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

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
	decls map[objectID]any
	// changed has the parts that differ from decls, with nil for one that is gone.
	changed map[objectID]any
}

var _ compile.Scope = (*TableScope)(nil)

func (t *TableScope) decl(id objectID) any {
	if d, ok := t.changed[id]; ok {
		return d
	}
	return t.decls[id]
}

// Set returns the declaration of a set or map.
func (t *TableScope) Set(name string) (*nftset.Set, bool) {
	d, ok := t.decl(setID(name)).(*nftset.Set)
	return d, ok
}

// Chain reports whether a chain exists.
func (t *TableScope) Chain(name string) bool { return t.decl(chainID(name)) != nil }

// Object reports whether a named object exists.
func (t *TableScope) Object(kind nft.ObjectKind, name string) bool {
	return t.decl(objectID{Kind: kind, Name: name}) != nil
}

// Flowtable reports whether a flowtable exists.
func (t *TableScope) Flowtable(name string) bool { return t.Object(kindFlowtable, name) }

// Scope returns the declarations of all that has been applied. The same Scope
// is returned until declarations change. A new one costs what changed, and now and then
// the table.
func (s *State) Scope() *Scope {
	if len(s.scopeDirty) == 0 {
		return s.scope
	}
	tables := maps.Clone(s.scope.tables)
	for id, dirty := range s.scopeDirty {
		t := s.tables[id]
		if t == nil || !t.exists() {
			delete(tables, id)
			continue
		}
		tables[id] = t.scope(s.scope.Table(id), dirty, &s.work)
	}
	clear(s.scopeDirty)
	s.scope = &Scope{tables: tables}
	return s.scope
}

// scope returns the declarations, of which only these parts may differ from an earlier scope.
func (t *table) scope(before *TableScope, dirty map[objectID]struct{}, work *Work) *TableScope {
	ts := &TableScope{decls: before.decls, changed: maps.Clone(before.changed)}
	if n := len(before.changed) + len(dirty); before.decls == nil || n > scopeChanges+len(before.decls)/8 {
		work.Objects += uint64(len(t.parts))
		ts = &TableScope{decls: make(map[objectID]any, len(t.parts))}
		for id, o := range t.parts {
			if o.exists() {
				ts.decls[id] = o.declared()
			}
		}
		return ts
	}
	if ts.changed == nil {
		ts.changed = make(map[objectID]any, len(dirty))
	}
	work.Objects += uint64(len(dirty))
	for id := range dirty {
		ts.changed[id] = nil
		if o := t.parts[id]; o != nil && o.exists() {
			ts.changed[id] = o.declared()
		}
	}
	return ts
}
