package desired

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Owned is a fragment's part in an object.
type Owned struct {
	// Fragment is the zero Key if no fragment owns the object.
	Fragment Key
	Priority int32
	// Rule is set if the object is a rule. Index is its position among the
	// fragment's rules in the chain, from 1.
	Rule  *compile.Rule
	Index int
	// Element is the fragment's element, if the object is one.
	Element nftset.Element
}

func (f *fragment) owned() Owned { return Owned{Fragment: f.key, Priority: f.priority} }

// OwnersOfTable returns the fragments that have something in a table, in merge
// order. It returns false if there is no such table.
func (s *State) OwnersOfTable(id nft.TableID) ([]Owned, bool) {
	t, ok := s.tables[id]
	if !ok || !t.exists() {
		return nil, false
	}
	var owners []Owned
	for _, key := range t.status().Fragments {
		owners = append(owners, s.fragments[key].owned())
	}
	return owners, true
}

// OwnersOfChain returns the fragments that declare a chain, and its
// declaration.
func (s *State) OwnersOfChain(id nft.TableID, name string) ([]Owned, *nftobject.Chain, bool) {
	o, ok := s.findChain(id, name)
	if !ok {
		return nil, nil, false
	}
	return o.owners(), o.decl(), true
}

// OwnersOfObject returns the fragments that declare a named object, or with the
// kind flowtable a flowtable, and its declaration.
func (s *State) OwnersOfObject(id nft.TableID, ref nftobject.Ref) ([]Owned, MergedObject, bool) {
	t, ok := s.tables[id]
	if !ok || t.objects[ref] == nil || !t.objects[ref].exists() {
		return nil, MergedObject{}, false
	}
	o := t.objects[ref]
	return o.owners(), MergedObject{Object: o.decl().object, Flowtable: o.decl().flowtable}, true
}

// OwnerOfRule returns the owner of the rule with a handle.
func (s *State) OwnerOfRule(id nft.TableID, chain string, handle uint64) (Owned, bool) {
	o, ok := s.findChain(id, chain)
	if !ok {
		return Owned{}, false
	}
	places := map[string]int{}
	for _, r := range o.rules {
		places[r.owner]++
		if r.handle == nil || r.handle.N != handle {
			continue
		}
		owned := Owned{}
		if key, ok := parseKey(r.owner); ok {
			owned.Fragment = key
			if f := s.fragments[key]; f != nil {
				owned = f.owned()
			}
		}
		owned.Rule, owned.Index = r.rule, places[r.owner]
		return owned, true
	}
	return Owned{}, false
}

// OwnersOfSet returns the fragments that declare a set or map, and its
// declaration.
func (s *State) OwnersOfSet(id nft.TableID, name string) ([]Owned, *nftset.Set, bool) {
	o, ok := s.findSet(id, name)
	if !ok {
		return nil, nil, false
	}
	return o.owners(), o.decl(), true
}

// OwnersOfElement returns the fragments that state an element, which is packed
// for the set, in merge order. The value of the first is in force.
func (s *State) OwnersOfElement(id nft.TableID, name string, e nftset.Element) ([]Owned, bool) {
	o, ok := s.findSet(id, name)
	if !ok {
		return nil, false
	}
	var owners []Owned
	key := elementID(o.decl(), &e)
	for _, sh := range o.shares {
		if mine, ok := sh.elements.get(key); ok {
			owned := sh.fragment.owned()
			owned.Element = mine
			owners = append(owners, owned)
		}
	}
	return owners, len(owners) > 0
}

func (s *State) findChain(id nft.TableID, name string) (*chain, bool) {
	t, ok := s.tables[id]
	if !ok || t.chains[name] == nil || !t.chains[name].exists() {
		return nil, false
	}
	return t.chains[name], true
}

func (s *State) findSet(id nft.TableID, name string) (*set, bool) {
	t, ok := s.tables[id]
	if !ok || t.sets[name] == nil || !t.sets[name].exists() {
		return nil, false
	}
	return t.sets[name], true
}
