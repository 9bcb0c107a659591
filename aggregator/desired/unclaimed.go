package desired

import "github.com/weft-proxy/weft/nft"

// HasUnclaimed reports whether DropUnclaimed would remove anything from a table: an object, or a
// part of one, that was in the kernel at Adopt and that no fragment is known for.
func (s *State) HasUnclaimed(of func(nft.TableID) bool) bool {
	for id, h := range s.unclaimed.tables {
		if !of(id) {
			continue
		}
		if len(h.shares) == 0 {
			return true
		}
		for id, sh := range h.shares {
			sh, ok := sh.(*setShare)
			if !ok || !sh.waiting && (!sh.passive || len(h.table.parts[id].fragments()) == 1) {
				return true
			}
		}
	}
	return false
}

// UnclaimedSets returns the sets and maps without a fragment that were in the kernel at
// Adopt, by table and name. Those that packets or elements may refer to are not
// among them: dynamic sets, and maps that lead to chains or objects.
func (s *State) UnclaimedSets() []Place {
	var sets []Place
	for _, h := range s.unclaimed.holdings() {
		for _, id := range sortedObjects(h.shares) {
			sh, ok := h.shares[id].(*setShare)
			if o := h.table.parts[id]; ok && len(o.fragments()) == 1 && o.base().refs == 0 && !sh.waiting && !sh.passive && !hasTargets(sh.decl) {
				sets = append(sets, o.at())
			}
		}
	}
	return sets
}

// DropUnclaimedSet gives up one of UnclaimedSets. It counts as a change like an Apply.
//
// Possible errors: *[Rejection].
func (s *State) DropUnclaimedSet(at Place) error {
	return s.change(Key{}, func(a *apply) {
		a.f = s.unclaimed
		h := s.unclaimed.tables[at.Table]
		a.giveUp(h, setID(at.Name))
		a.releaseUnclaimed(h.table)
	}, nil)
}

// Returned reports whether all fragments of a publisher have sent their snapshots since Adopt, at
// least one, and all fragments in a table too.
func (s *State) Returned(publisher string, table nft.TableID) (returned bool) {
	for _, f := range s.fragments {
		of := f.key.Publisher == publisher
		if f.adopted && (of || f.tables[table] != nil) {
			return false
		}
		returned = returned || of
	}
	return returned
}

// DropUnclaimed gives up the content without a fragment in tables. It counts as a
// change like an Apply.
//
// Possible errors: *[Rejection], when a fragment refers to some of it.
func (s *State) DropUnclaimed(of func(nft.TableID) bool) error {
	return s.change(Key{}, func(a *apply) {
		a.f = s.unclaimed
		for _, h := range s.unclaimed.holdings() {
			if !of(h.table.id) {
				continue
			}
			for id, sh := range h.shares {
				if sh, ok := sh.(*setShare); !ok || !sh.waiting {
					a.giveUp(h, id)
				}
			}
			a.releaseUnclaimed(h.table)
		}
	}, nil)
}
