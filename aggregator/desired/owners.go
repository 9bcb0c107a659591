package desired

import (
	"cmp"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Owned is a fragment that has a part in an object. It says which part.
type Owned struct {
	// Fragment is the zero Key if no fragment owns the object.
	Fragment Key
	Priority int32
	// Rule is set if the object is a rule. Index is its position among the
	// fragment's rules in the chain, from 1.
	Rule  *compile.Rule
	Index int
	// Element is set if the object is an element: it is the fragment's own, with its
	// own value.
	Element nftset.Element
}

func (f *fragment) owned() Owned { return Owned{Fragment: f.key, Priority: f.priority} }

// OwnersOfTable returns the fragments that have something in a table, in merge
// order. It returns false if there is no such table. Unlike the owners of chains,
// sets and rules, the list has no zero Key for content without a fragment.
func (s *State) OwnersOfTable(id nft.TableID) ([]Owned, bool) {
	t := s.existing(id)
	var owners []Owned
	for _, h := range t.inOrder() {
		if !h.fragment.unclaimed {
			owners = append(owners, h.fragment.owned())
		}
	}
	return owners, t.exists()
}

// Owners returns the fragments that declare a chain, a set or map, a named object or a
// flowtable, in merge order, and the op that adds it.
func (s *State) Owners(id nft.TableID, ref nftobject.Ref) ([]Owned, kernel.Op, bool) {
	o, ok := find[part](s, id, ref)
	if !ok {
		return nil, nil, false
	}
	var owners []Owned
	for _, f := range o.fragments() {
		owners = append(owners, f.owned())
	}
	return owners, o.addition(), true
}

// OwnerOfRule returns the owner of the rule with a handle.
func (s *State) OwnerOfRule(id nft.TableID, name string, handle uint64) (Owned, bool) {
	o, ok := find[*chain](s, id, chainID(name))
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

// OwnersOfElement returns the fragments that state an element, which is packed
// for the set, in merge order. The value of the first is in force. In a set with auto-merge they are
// those that state a part of it, each with the first such element. Their State has the time that is left.
func (s *State) OwnersOfElement(id nft.TableID, name string, e nftset.Element) ([]Owned, bool) {
	o, ok := find[*set](s, id, setID(name))
	if !ok {
		return nil, false
	}
	var owners []Owned
	key := packed.ID(o.decl(), &e)
	for _, sh := range o.shares {
		mine, ok := sh.elements.Get(key)
		if !ok && o.merge != nil {
			for part := range o.merge.Overlapping(key) {
				if mine, ok = sh.elements.Get(part); ok {
					break
				}
			}
		}
		if ok {
			owned := sh.fragment.owned()
			owned.Element = s.rest(sh, key, mine)
			owners = append(owners, owned)
		}
	}
	return owners, len(owners) > 0
}

// existing returns a table, or an empty one if there is none.
func (s *State) existing(id nft.TableID) *table { return cmp.Or(s.tables[id], &table{}) }

// find returns a part of a table, if it exists and is of the type O.
func find[O part](s *State, table nft.TableID, id objectID) (O, bool) {
	o, ok := s.existing(table).parts[id].(O)
	return o, ok && o.exists()
}

// Parts returns what a snapshot declares in a table, and what it refers to there, ordered by
// kind and name. A publisher needs a grant for each of them that another one owns. If the
// snapshot wants the table dormant, the first Place has no kind, as in [Grant].
func (tu *TableUpdate) Parts() []Place {
	var ids []objectID
	if tu.Dormant {
		ids = append(ids, objectID{})
	}
	for i := range tu.PutChains {
		ids = append(ids, chainID(tu.PutChains[i].Decl.Name))
		for _, r := range tu.PutChains[i].Rules {
			ids = appendReferences(ids, r)
		}
	}
	for i := range tu.PutSets {
		decl := tu.PutSets[i].Decl
		ids = append(ids, setID(decl.Name))
		if !packed.HasTargets(decl) {
			continue
		}
		for _, e := range tu.PutSets[i].Elements {
			if id := leadsTo(decl, e.Data); id.Name != "" {
				ids = append(ids, id)
			}
		}
	}
	for _, o := range tu.PutObjects {
		ids = append(ids, o.Ref())
	}
	for _, f := range tu.PutFlowtables {
		ids = append(ids, objectID{Kind: kindFlowtable, Name: f.Name})
	}
	var parts []Place
	for _, id := range sortIDs(ids) {
		parts = append(parts, Place{Table: tu.Table, Kind: string(id.Kind), Name: id.Name})
	}
	return parts
}
