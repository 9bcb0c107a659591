package check

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
)

// scope is what the files declare in one table. It implements compile.Scope.
type scope struct {
	id         nft.TableID
	sets       map[string]*set.Set
	chains     map[string]*object.Chain
	objects    map[object.Ref]bool
	flowtables map[string]bool
	// files are those that have a part in the table.
	files []*unit
	// counted is true for a table that is in one of the files to check.
	counted bool
	// incomplete is set when somebody asks for something whose declaration is
	// wrong: what follows from that is no error of its own.
	incomplete bool
}

func newScope(id nft.TableID) *scope {
	return &scope{
		id: id, sets: map[string]*set.Set{}, chains: map[string]*object.Chain{},
		objects: map[object.Ref]bool{}, flowtables: map[string]bool{},
	}
}

// Set is Scope's.
func (s *scope) Set(name string) (*set.Set, bool) {
	set := s.sets[name]
	return set, s.found(set != nil, "set", name)
}

// Chain is Scope's.
func (s *scope) Chain(name string) bool { return s.found(s.chains[name] != nil, "chain", name) }

// Object is Scope's.
func (s *scope) Object(kind nft.ObjectKind, name string) bool {
	return s.found(s.objects[object.Ref{Kind: kind, Name: name}], string(kind), name)
}

// Flowtable is Scope's.
func (s *scope) Flowtable(name string) bool {
	return s.found(s.flowtables[name], "flowtable", name)
}

// found returns ok. Where something is missing it notes whether that is so
// because its declaration is wrong.
func (s *scope) found(ok bool, kind, name string) bool {
	id := ruleset.PlaceID{Table: s.id, Kind: kind, Name: name}
	for i := 0; !ok && i < len(s.files); i++ {
		s.incomplete = s.incomplete || s.files[i].places.Declared(id)
	}
	return ok
}

// first names the first file, other than u, that declares something.
func (s *scope) first(id ruleset.PlaceID, u *unit) string {
	for _, f := range s.files {
		if f != u && f.places.Declared(id) {
			return f.Name
		}
	}
	return "another file"
}
