package eval

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/weft-proxy/weft/nft/set"
)

// Set is a set or map.
type Set struct {
	Decl *set.Set
	// publisher, as in Rule; may be empty
	Owner    string
	Elements Finder
}

// Finder finds elements, perhaps in the kernel.
type Finder interface {
	// Find returns the element of a packed key, or else the catch-all element.
	Find(key string) (e set.Element, ok bool, err error)
}

// NewSet indexes the elements.
func NewSet(decl *set.Set, elements []set.Element) Set {
	x := &index{exact: map[string]int{}, groups: map[string][]int{}, elements: slices.Clone(elements), catchall: -1}
	if x.fields = decl.Key.Fields; len(x.fields) == 0 {
		x.fields = []uint32{decl.Key.Len}
	}
	for i, e := range x.elements {
		switch {
		case e.Key == "":
			x.catchall = i
		case e.KeyEnd == "" || e.KeyEnd == e.Key:
			x.exact[e.Key] = i
		default:
			key := x.single(e.Key, e)
			x.groups[key] = append(x.groups[key], i)
			x.addMask(e)
		}
	}
	for _, group := range x.groups {
		slices.SortFunc(group, func(i, j int) int { return cmp.Compare(x.elements[i].Key, x.elements[j].Key) })
	}
	return Set{Decl: decl, Elements: x}
}

// Anonymous returns a rule's anonymous sets.
func Anonymous(sets []set.Anonymous) []Set {
	out := make([]Set, len(sets))
	for i, a := range sets {
		out[i] = NewSet(a.Set, a.Elements)
	}
	return out
}

// index searches fast, except in concatenations of many elements with ranges in the same parts.
type index struct {
	fields   []uint32
	elements []set.Element
	// of a single key
	exact map[string]int
	// masks: an element for each combination of parts with ranges; groups: the elements by their
	// other parts, ordered by key
	masks    []set.Element
	groups   map[string][]int
	catchall int
}

// Find implements Finder.
func (x *index) Find(key string) (set.Element, bool, error) {
	if i, ok := x.exact[key]; ok {
		return x.elements[i], true, nil
	}
	for _, mask := range x.masks {
		group := x.groups[x.single(key, mask)]
		// without concatenation elements do not overlap: only the last one that begins before the
		// key can contain it
		n := sort.Search(len(group), func(i int) bool { return x.elements[group[i]].Key > key })
		for i := n - 1; i >= 0; i-- {
			if e := x.elements[group[i]]; x.inside(e, key) {
				return e, true, nil
			}
			if len(x.fields) == 1 {
				break
			}
		}
	}
	if x.catchall >= 0 {
		return x.elements[x.catchall], true, nil
	}
	return set.Element{}, false, nil
}

func (x *index) addMask(e set.Element) {
	combination := x.ranges(e)
	if !slices.ContainsFunc(x.masks, func(m set.Element) bool { return x.ranges(m) == combination }) {
		x.masks = append(x.masks, e)
	}
}

func (x *index) ranges(e set.Element) (bits uint64) {
	x.parts(func(i, from, to int) {
		if e.Key[from:to] != e.KeyEnd[from:to] {
			bits |= 1 << i
		}
	})
	return bits
}

// single returns the parts without ranges, after a number that identifies them.
func (x *index) single(key string, mask set.Element) string {
	bits := x.ranges(mask)
	var b strings.Builder
	b.WriteByte(byte(bits))
	b.WriteByte(byte(bits >> 8))
	x.parts(func(i, from, to int) {
		if bits>>i&1 == 0 {
			b.WriteString(key[from:to])
		}
	})
	return b.String()
}

func (x *index) inside(e set.Element, key string) bool {
	ok := true
	x.parts(func(_, from, to int) { ok = ok && key[from:to] >= e.Key[from:to] && key[from:to] <= e.KeyEnd[from:to] })
	return ok
}

func (x *index) parts(f func(i, from, to int)) {
	at := 0
	for i, n := range x.fields {
		f(i, at, at+int(n))
		at += (int(n) + 3) &^ 3
	}
}
