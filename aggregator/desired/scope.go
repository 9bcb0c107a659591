package desired

import (
	"maps"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

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
	sets   map[string]*nftset.Set
	chains map[string]bool
	// objects is nil if there are none.
	objects map[objectID]objectDecl
}

var _ compile.Scope = (*TableScope)(nil)

// Set returns the declaration of a set or map.
func (t *TableScope) Set(name string) (*nftset.Set, bool) {
	s, ok := t.sets[name]
	return s, ok
}

// Chain reports whether a chain exists.
func (t *TableScope) Chain(name string) bool { return t.chains[name] }

// Object reports whether a named object exists.
func (t *TableScope) Object(kind nft.ObjectKind, name string) bool {
	return t.objects[objectID{Kind: kind, Name: name}].object != nil
}

// Flowtable reports whether a flowtable exists.
func (t *TableScope) Flowtable(name string) bool {
	return t.objects[objectID{Kind: kindFlowtable, Name: name}].flowtable != nil
}

// Scope returns the declarations of all that has been applied. The same Scope
// is returned until declarations change, and only the tables in which they did
// are built anew.
func (s *State) Scope() *Scope {
	if len(s.scopeDirty) == 0 {
		return s.scope
	}
	tables := maps.Clone(s.scope.tables)
	for id := range s.scopeDirty {
		t := s.tables[id]
		if t == nil || !t.exists() {
			delete(tables, id)
			continue
		}
		s.work.Objects += uint64(len(t.sets) + len(t.chains) + len(t.objects))
		ts := &TableScope{sets: make(map[string]*nftset.Set, len(t.sets)), chains: make(map[string]bool, len(t.chains))}
		for name, o := range t.sets {
			if o.exists() {
				ts.sets[name] = o.decl()
			}
		}
		for name, o := range t.chains {
			if o.exists() {
				ts.chains[name] = true
			}
		}
		for id, o := range t.objects {
			if o.exists() {
				if ts.objects == nil {
					ts.objects = make(map[objectID]objectDecl, len(t.objects))
				}
				ts.objects[id] = o.decl()
			}
		}
		tables[id] = ts
	}
	clear(s.scopeDirty)
	s.scope = &Scope{tables: tables}
	return s.scope
}
