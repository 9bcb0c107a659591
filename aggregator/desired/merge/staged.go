package merge

import (
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Staged is a new set or map that the kernel gets before its update, in several transactions. No
// rule refers to it yet: packets do not see it.
type Staged struct {
	ID StagedID
	// Comment is for a table that the kernel lacks.
	Comment string
	Decl    *nftset.Set
	// Elements are for the kernel, merged with auto-merge; Stated are the update's, Packed the
	// share's.
	Elements, Stated []nftset.Element
	Packed           *packed.Elements
	// Begun is true if the kernel has the set; Sent and Content describe its elements there.
	Begun   bool
	Sent    int
	Content cost.Content
}

type StagedID struct {
	Table nft.TableID
	Name  string
}

// SameSlice compares addresses, not elements.
func SameSlice(a, b []nftset.Element) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// stagedElements returns the elements that Stage has packed, or nil.
func (s *State) stagedElements(o *Set, p *desired.Set) *packed.Elements {
	if st := s.Staged[StagedID{o.Table.ID, o.ID.Name}]; st != nil && st.Decl == p.Decl && SameSlice(st.Stated, p.Elements) {
		return st.Packed
	}
	return nil
}

func (st *Staged) Complete() bool { return st.Begun && st.Sent == len(st.Elements) }

// Is reports whether the kernel has exactly the newly applied set.
func (st *Staged) Is(o *Set, touched map[string]Touch) bool {
	return st.Complete() && len(o.Shares) == 1 && len(touched) == 0 && st.Decl.Equal(o.Decl()) &&
		SameSlice(st.Stated, o.Shares[0].Fresh) && (len(st.Elements) > 0 || o.Shares[0].Elements.Len() == 0)
}

// Intact reports whether a dumped set has exactly the sent elements.
func (st *Staged) Intact(d *kernel.Set) bool {
	if !st.Begun || len(d.Elements) != st.Sent || !d.Decl.Equal(st.Decl) {
		return false
	}
	there := make(map[string]*nftset.Element, len(d.Elements))
	for i := range d.Elements {
		there[packed.ID(st.Decl, &d.Elements[i])] = &d.Elements[i]
	}
	for i := range st.Elements[:st.Sent] {
		e, ok := there[packed.ID(st.Decl, &st.Elements[i])]
		if !ok || !packed.Same(st.Decl, e, &st.Elements[i]) {
			return false
		}
	}
	return true
}
