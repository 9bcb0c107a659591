package desired

import "github.com/weft-proxy/weft/nft"

// Unclaimed is an object, or a part of one, that was in the kernel at Adopt
// and that no fragment is known for.
type Unclaimed struct {
	Table nft.TableID
	// Object is "chain input", "set blocked" or "counter drops"; "" is the table
	// itself.
	Object string
	// Rules and Elements count the parts of the object that no fragment owns.
	Rules, Elements int
}

// Unclaimed lists what DropUnclaimed would remove, in a fixed order.
func (s *State) Unclaimed() []Unclaimed {
	var all []Unclaimed
	for _, h := range s.unclaimed.holdings() {
		if len(h.shares) == 0 {
			all = append(all, Unclaimed{Table: h.table.id})
		}
		for _, id := range sortedObjects(h.shares) {
			o := h.table.parts[id]
			u := Unclaimed{Table: h.table.id, Object: o.at().inTable()}
			switch sh := h.shares[id].(type) {
			case *chainShare:
				u.Rules = len(sh.rules)
			case *setShare:
				if sh.waiting || sh.passive && len(o.fragments()) > 1 {
					continue
				}
				u.Elements = sh.elements.len()
			}
			all = append(all, u)
		}
	}
	return all
}

// DropUnclaimed gives up everything that Unclaimed lists. It counts as a
// change like an Apply.
//
// Possible errors: *[Rejection], when a fragment refers to some of it.
func (s *State) DropUnclaimed() error {
	return s.change(Key{}, func(a *apply) {
		a.f = s.unclaimed
		for _, h := range s.unclaimed.holdings() {
			for id, sh := range h.shares {
				if sh, ok := sh.(*setShare); !ok || !sh.waiting {
					a.giveUp(h, id)
				}
			}
			a.releaseUnclaimed(h.table)
		}
	})
}
