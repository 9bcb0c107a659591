package merge

import (
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
)

// setsShared returns the sets of the fragment that the unclaimed fragment shares.
func (f *Fragment) setsShared() []*Set {
	var shared []*Set
	for _, h := range f.Tables {
		for id := range h.Shares {
			if o, ok := h.Table.Parts[id].(*Set); ok && o.unclaimed() != nil {
				shared = append(shared, o)
			}
		}
	}
	return shared
}

// resolveUnclaimed drops unclaimed shares of sets without awaited fragments: Waiting ones, and
// beside other shares Passive or empty ones.
func (a *Apply) resolveUnclaimed(sets []*Set) {
	for _, o := range sets {
		sh := o.unclaimed()
		if sh == nil || o.awaited() {
			continue
		}
		if sh.Waiting || len(o.Shares) > 1 && (sh.Passive || sh.Elements.Len() == 0) {
			a.giveUp(a.s.Unclaimed.Tables[o.Table.ID], o.ID)
			a.releaseUnclaimed(o.Table)
		}
	}
}

func (a *Apply) releaseUnclaimed(t *Table) {
	if h, ok := a.s.Unclaimed.Tables[t.ID]; ok && len(h.Shares) == 0 {
		h.release(a.s)
	}
}

// HasUnclaimed reports whether DropUnclaimed would remove content.
func (s *State) HasUnclaimed(of func(nft.TableID) bool) bool {
	for id, h := range s.Unclaimed.Tables {
		if !of(id) {
			continue
		}
		if len(h.Shares) == 0 {
			return true
		}
		for id, sh := range h.Shares {
			sh, ok := sh.(*SetShare)
			if !ok || !sh.Waiting && (!sh.Passive || len(h.Table.Parts[id].Fragments()) == 1) {
				return true
			}
		}
	}
	return false
}

// UnclaimedSets returns the unclaimed sets and maps by table and name, except with possible
// references: dynamic sets, and maps that lead to chains or objects.
func (s *State) UnclaimedSets() []desired.Place {
	var sets []desired.Place
	for _, h := range s.Unclaimed.SortedHoldings() {
		for _, id := range SortedObjects(h.Shares) {
			sh, ok := h.Shares[id].(*SetShare)
			if o := h.Table.Parts[id]; ok && len(o.Fragments()) == 1 && o.Base().Refs == 0 && !sh.Waiting && !sh.Passive && !packed.HasTargets(sh.Decl) {
				sets = append(sets, o.At())
			}
		}
	}
	return sets
}

// DropUnclaimedSet gives up one of UnclaimedSets. It counts as a change like an Apply.
//
// Possible errors: *[desired.Rejection].
func (s *State) DropUnclaimedSet(at desired.Place) error {
	return s.Change(desired.Key{}, func(a *Apply) {
		a.F = s.Unclaimed
		h := s.Unclaimed.Tables[at.Table]
		a.giveUp(h, SetID(at.Name))
		a.releaseUnclaimed(h.Table)
	}, nil)
}

// Returned reports whether a publisher has fragments, and no fragment of the publisher or in the
// table is still adopted.
func (s *State) Returned(publisher string, table nft.TableID) (returned bool) {
	for _, f := range s.Fragments {
		of := f.Key.Publisher == publisher
		if f.Adopted && (of || f.Tables[table] != nil) {
			return false
		}
		returned = returned || of
	}
	return returned
}

// DropUnclaimed gives up the content without a fragment in tables. It counts as a change like an
// Apply.
//
// Possible errors: *[desired.Rejection], when a fragment refers to some content.
func (s *State) DropUnclaimed(of func(nft.TableID) bool) error {
	return s.Change(desired.Key{}, func(a *Apply) {
		a.F = s.Unclaimed
		for _, h := range s.Unclaimed.SortedHoldings() {
			if !of(h.Table.ID) {
				continue
			}
			for id, sh := range h.Shares {
				if sh, ok := sh.(*SetShare); !ok || !sh.Waiting {
					a.giveUp(h, id)
				}
			}
			a.releaseUnclaimed(h.Table)
		}
	}, nil)
}
