package packed

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// View has the elements of a set at one time. It shares their memory: Elements copy a chunk or page
// before a change. Any goroutine may use a view.
type View struct {
	// Merge is the declaration that joins the elements of a set with auto-merge, nil unless the
	// reader sees all.
	Merge  *nftset.Set
	shares []viewed
}

type viewed struct {
	elements *Elements
	// hidden elements are not seen, but hide equal keys of later shares.
	hidden bool
}

// Add adds the present elements of the next share.
func (v *View) Add(el *Elements, hidden bool) {
	now := &Elements{Shape: el.Shape, table: el.table.share(), targets: el.targets.share(), extras: el.extras.share(), odd: maps.Clone(el.odd)}
	v.shares = append(v.shares, viewed{now, hidden})
}

func (el *Elements) View() *View {
	v := &View{}
	v.Add(el, false)
	return v
}

// Len counts the elements of all fragments, also hidden ones.
func (v *View) Len() (n int) {
	for _, sh := range v.shares {
		n += sh.elements.Len()
	}
	return n
}

// Divide divides elements into visible ones and others. It walks all keys, unsorted: a view has no
// index.
func (v *View) Divide(decl *nftset.Set, elements []nftset.Element) (seen, others []nftset.Element) {
	if v.Merge != nil {
		return v.divideMerged(elements)
	}
	ids := make([]string, len(elements))
	hidden := make(map[string]bool, len(elements))
	for i := range elements {
		ids[i] = ID(decl, &elements[i])
		hidden[ids[i]] = true
	}
	// The first share with an element decides.
	for _, sh := range slices.Backward(v.shares) {
		for i := range sh.elements.n {
			id := sh.elements.keyAt(i)
			if _, ok := hidden[string(id)]; ok {
				hidden[string(id)] = sh.hidden
			}
		}
		for id := range sh.elements.odd {
			if _, ok := hidden[id]; ok {
				hidden[id] = sh.hidden
			}
		}
	}
	for i, id := range ids {
		if hidden[id] {
			others = append(others, elements[i])
		} else {
			seen = append(seen, elements[i])
		}
	}
	return seen, others
}

func (v *View) divideMerged(elements []nftset.Element) (seen, others []nftset.Element) {
	ids := map[string]struct{}{}
	for e := range v.Sorted() {
		ids[ID(v.Merge, &e)] = struct{}{}
	}
	for _, e := range elements {
		if _, ok := ids[ID(v.Merge, &e)]; ok {
			seen = append(seen, e)
		} else {
			others = append(others, e)
		}
	}
	return seen, others
}

// number counts rows, then odd elements.
type viewedElement struct{ share, number uint32 }

// Sorted returns the elements by packed key: numbers and addresses are in their own order.
func (v *View) Sorted() iter.Seq[nftset.Element] {
	if v.Merge == nil {
		return v.stated()
	}
	stated := slices.Collect(v.stated())
	merged, err := v.Merge.Normalize(stated)
	if err != nil {
		return slices.Values(stated) // they overlap others with a timeout: the kernel refuses them
	}
	return slices.Values(merged)
}

// stated returns the elements unmerged, in the order of Sorted.
func (v *View) stated() iter.Seq[nftset.Element] {
	return func(yield func(nftset.Element) bool) {
		odd := make([][]string, len(v.shares))
		var all []viewedElement
		for s, sh := range v.shares {
			odd[s] = slices.Sorted(maps.Keys(sh.elements.odd))
			all = slices.Grow(all, sh.elements.Len())
			for i := range sh.elements.Len() {
				all = append(all, viewedElement{uint32(s), uint32(i)}) //nolint:gosec // there are not that many elements
			}
		}
		id := func(e viewedElement) []byte {
			el, n := v.shares[e.share].elements, int(e.number)
			if n < el.n {
				return el.keyAt(n)
			}
			return []byte(odd[e.share][n-el.n])
		}
		slices.SortFunc(all, func(a, b viewedElement) int {
			return cmp.Or(bytes.Compare(id(a), id(b)), cmp.Compare(a.share, b.share))
		})
		for i, e := range all {
			key, sh := id(e), v.shares[e.share]
			if i > 0 && bytes.Equal(key, id(all[i-1])) || sh.hidden {
				continue
			}
			var element nftset.Element
			if n := int(e.number); n < sh.elements.n {
				element = sh.elements.element(n, string(sh.elements.at(n)[linkLen:]))
			} else {
				element = sh.elements.odd[string(key)]
			}
			if !yield(element) {
				return
			}
		}
	}
}
