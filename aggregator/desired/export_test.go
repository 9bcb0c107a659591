package desired

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// allTables selects every table.
func allTables(nft.TableID) bool { return true }

var errNotAdopted = errors.New("fragment is not waiting for its publisher")

// DropAdopted withdraws an adopted fragment. It counts as a change like an
// Apply.
// Possible errors: one that wraps [errNotAdopted]; *[Rejection], if other
// fragments refer to objects that it holds.
func (s *State) DropAdopted(key Key) error {
	f, ok := s.fragments[key]
	if !ok || !f.adopted {
		return fmt.Errorf("drop adopted fragment %s: %w", key, errNotAdopted)
	}
	return s.change(key, func(a *apply) {
		a.f = f
		a.withdraw(f)
	}, nil)
}

// Empty reports whether there is nothing to commit but new deadlines.
func (p *Plan) Empty() bool {
	return !slices.ContainsFunc(p.Ops, func(op kernel.Op) bool { add, ok := op.(kernel.AddElements); return !ok || !add.Renew })
}

// Pending returns the number of updates since the last Accept or Rollback:
// successful calls of Apply and DropUnclaimed. Plan.Origin counts in these.
func (s *State) Pending() int { return s.origin }

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
				u.Elements = sh.elements.Len()
			}
			all = append(all, u)
		}
	}
	return all
}

// sortedKeys returns a map's keys in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := slices.AppendSeq(make([]K, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}
