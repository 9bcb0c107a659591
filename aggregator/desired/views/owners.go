package views

import (
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func ownedBy(f *merge.Fragment) desired.Owned {
	return desired.Owned{Fragment: f.Key, Priority: f.Priority}
}

// OwnersOfTable returns the fragments in a table, in merge order. Unlike other lists of owners, it
// has no zero Key for content without a fragment.
func OwnersOfTable(s *merge.State, id nft.TableID) ([]desired.Owned, bool) {
	t := s.Existing(id)
	var owners []desired.Owned
	for _, h := range t.InOrder() {
		if !h.Fragment.Unclaimed {
			owners = append(owners, ownedBy(h.Fragment))
		}
	}
	return owners, t.Exists()
}

// Owners returns the fragments with a share of a part, in merge order, and the op to add the part.
func Owners(s *merge.State, id nft.TableID, ref nftobject.Ref) ([]desired.Owned, kernel.Op, bool) {
	o, ok := merge.Find[merge.Part](s, id, ref)
	if !ok {
		return nil, nil, false
	}
	var owners []desired.Owned
	for _, f := range o.Fragments() {
		owners = append(owners, ownedBy(f))
	}
	return owners, o.Addition(), true
}

func OwnerOfRule(s *merge.State, id nft.TableID, name string, handle uint64) (desired.Owned, bool) {
	o, ok := merge.Find[*merge.Chain](s, id, merge.ChainID(name))
	if !ok {
		return desired.Owned{}, false
	}
	places := map[string]int{}
	for _, r := range o.Rules {
		places[r.Owner]++
		if r.Handle == nil || r.Handle.N != handle {
			continue
		}
		owned := desired.Owned{}
		if key, ok := desired.ParseKey(r.Owner); ok {
			owned.Fragment = key
			if f := s.Fragments[key]; f != nil {
				owned = ownedBy(f)
			}
		}
		owned.Rule, owned.Index = r.Rule, places[r.Owner]
		return owned, true
	}
	return desired.Owned{}, false
}

// OwnersOfElement returns the fragments that state a packed element, in merge order, with the
// remaining time. The first decides. In a set with auto-merge each has its first overlapping
// element.
func OwnersOfElement(s *merge.State, id nft.TableID, name string, e nftset.Element) ([]desired.Owned, bool) {
	o, ok := merge.Find[*merge.Set](s, id, merge.SetID(name))
	if !ok {
		return nil, false
	}
	var owners []desired.Owned
	key := packed.ID(o.Decl(), &e)
	for _, sh := range o.Shares {
		stated := key
		mine, ok := sh.Elements.Get(key)
		if !ok && o.Merge != nil {
			for part := range o.Merge.Overlapping(key) {
				if mine, ok = sh.Elements.Get(part); ok {
					stated = part
					break
				}
			}
		}
		if ok {
			owned := ownedBy(sh.Fragment)
			owned.Element = s.Expiries.Rest(sh, stated, mine)
			owners = append(owners, owned)
		}
	}
	return owners, len(owners) > 0
}
