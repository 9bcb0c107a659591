package desired

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// Reader says whose content a reader sees. The zero value sees nothing.
type Reader struct {
	// Publisher is the publisher whose fragments are seen.
	Publisher string
	// All is true if those of all publishers are seen, and content without a fragment.
	All bool
}

// Sees reports whether the fragments of a publisher are seen.
func (r Reader) Sees(publisher string) bool {
	return r.All || publisher != "" && publisher == r.Publisher
}

func (r Reader) sees(f *fragment) bool { return r.All || !f.unclaimed && r.Sees(f.key.Publisher) }

// seesOwner is sees for the fragment of a rule.
func (r Reader) seesOwner(owner string) bool {
	publisher, _, _ := strings.Cut(owner, "/")
	return r.Sees(publisher)
}

// ElementView has the elements of a set as they were when the view was made. It shares the
// memory of the State, which copies what it changes. Any goroutine may use it.
type ElementView struct {
	// shares are those of the set, in order of precedence.
	shares []viewedShare
	// merge is the declaration of a set with auto-merge whose elements are all seen: they are merged, as
	// in the kernel. It is nil for others.
	merge *nftset.Set
}

type viewedShare struct {
	elements *elements
	// hidden is true if the reader does not see the elements, but only that they hide
	// those of other shares.
	hidden bool
}

// share returns the elements as they are now, for a view.
func (el *elements) share() *elements {
	return &elements{shape: el.shape, records: el.records.share(), targets: el.targets.share(), extras: el.extras.share(), odd: maps.Clone(el.odd)}
}

// view returns the elements in force that a reader sees. It costs what there is in pages,
// not in elements.
func (o *set) view(r Reader) *ElementView {
	v := &ElementView{}
	if o.merge != nil && r.All {
		v.merge = o.merge.decl
	}
	for _, sh := range o.shares {
		if !sh.passive {
			v.shares = append(v.shares, viewedShare{sh.elements.share(), !r.sees(sh.fragment)})
		}
	}
	return v
}

// Len returns the number of elements of all fragments, with those that others hide.
func (v *ElementView) Len() (n int) {
	for _, sh := range v.shares {
		n += sh.elements.len()
	}
	return n
}

// Divide divides elements of a set with the declaration into those whose keys the reader sees,
// and the others. It walks all keys, because a view has no index, but does not sort them.
func (v *ElementView) Divide(decl *nftset.Set, elements []nftset.Element) (seen, others []nftset.Element) {
	if v.merge != nil {
		return v.divideMerged(elements)
	}
	ids := make([]string, len(elements))
	hidden := make(map[string]bool, len(elements))
	for i := range elements {
		ids[i] = elementID(decl, &elements[i])
		hidden[ids[i]] = true
	}
	// The first share that has an element decides.
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

// divideMerged is Divide for a set with auto-merge.
func (v *ElementView) divideMerged(elements []nftset.Element) (seen, others []nftset.Element) {
	ids := map[string]struct{}{}
	for e := range v.Sorted() {
		ids[elementID(v.merge, &e)] = struct{}{}
	}
	for _, e := range elements {
		if _, ok := ids[elementID(v.merge, &e)]; ok {
			seen = append(seen, e)
		} else {
			others = append(others, e)
		}
	}
	return seen, others
}

// viewedElement is a record of a share, by their numbers, or an odd element, whose number
// is counted from the last record.
type viewedElement struct{ share, number uint32 }

// Sorted returns the elements by their packed keys: numbers and addresses come in their own
// order.
func (v *ElementView) Sorted() iter.Seq[nftset.Element] {
	if v.merge == nil {
		return v.stated()
	}
	stated := slices.Collect(v.stated())
	merged, err := v.merge.Normalize(stated)
	if err != nil {
		return slices.Values(stated) // they overlap others with a timeout: the kernel refuses them
	}
	return slices.Values(merged)
}

// stated returns the elements as their fragments state them, ordered as by Sorted.
func (v *ElementView) stated() iter.Seq[nftset.Element] {
	return func(yield func(nftset.Element) bool) {
		odd := make([][]string, len(v.shares))
		var all []viewedElement
		for s, sh := range v.shares {
			odd[s] = slices.Sorted(maps.Keys(sh.elements.odd))
			all = slices.Grow(all, sh.elements.len())
			for i := range sh.elements.len() {
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
