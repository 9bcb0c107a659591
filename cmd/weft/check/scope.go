package check

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
)

// scope has the declarations of all files in one table.
type scope struct {
	id         nft.TableID
	sets       map[string]*set.Set
	chains     map[string]*object.Chain
	objects    map[object.Ref]bool
	flowtables map[string]bool
	files      []*unit
	// a file outside context has counted the table
	counted bool
	// A failed, unreported lookup sets incomplete: the declaration is wrong or unread, or its absence
	// was reported.
	incomplete bool
	// unknown has reported names.
	unknown map[ruleset.DeclarationID]bool
	// a file was not read to its end
	partial *bool
}

func newScope(id nft.TableID) *scope {
	return &scope{
		id: id, sets: map[string]*set.Set{}, chains: map[string]*object.Chain{},
		objects: map[object.Ref]bool{}, flowtables: map[string]bool{},
		unknown: map[ruleset.DeclarationID]bool{},
	}
}

// Set implements compile.Scope.
func (s *scope) Set(name string) (*set.Set, bool) {
	set := s.sets[name]
	return set, s.found(set != nil, "set", name)
}

// Chain implements compile.Scope.
func (s *scope) Chain(name string) bool { return s.found(s.chains[name] != nil, "chain", name) }

// Object implements compile.Scope.
func (s *scope) Object(kind nft.ObjectKind, name string) bool {
	return s.found(s.objects[object.Ref{Kind: kind, Name: name}], string(kind), name)
}

// Flowtable implements compile.Scope.
func (s *scope) Flowtable(name string) bool {
	return s.found(s.flowtables[name], "flowtable", name)
}

// found sets incomplete if a failure must not be reported.
func (s *scope) found(ok bool, kind, name string) bool {
	if ok {
		return true
	}
	id := ruleset.DeclarationID{Table: s.id, Kind: kind, Name: name}
	declared := func(u *unit) bool { return u.places.Declared(id) }
	s.incomplete = s.incomplete || *s.partial || s.unknown[id] || slices.ContainsFunc(s.files, declared)
	s.unknown[id] = true
	return false
}

// first returns the name of the first file other than u that declares id.
func (s *scope) first(id ruleset.DeclarationID, u *unit) string {
	for _, f := range s.files {
		if f != u && f.places.Declared(id) {
			return f.Name
		}
	}
	return "another file"
}
