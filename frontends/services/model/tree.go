package model

import (
	"slices"
	"sort"
	"strings"
)

// tree is an immutable sorted list of packed endpoints of one width, with duplicates
// allowed. It is a B+tree whose versions share equal nodes. nil is the empty list. A leaf
// has up to maxFan entries, and contains nothing that the garbage collector has to
// follow. Functions add to work the number of entries and children that they looked at.
type tree struct {
	// packed has the entries of a leaf, or the first entry of each child.
	packed string
	// children is nil for a leaf. All have the same height.
	children *[maxFan]*tree
	// count is the number of entries in all leaves.
	count  uint32
	width  uint8
	height uint8
}

const (
	// maxFan is the maximum of entries in a leaf and of children in an inner node.
	maxFan = 64
	// minFan is their minimum after a change, unless the node is the only one of its
	// level.
	minFan = 16
	// usualFan is their maximum after a split, which leaves room for more.
	usualFan = 48
)

// edit adds an entry, or removes an equal one.
type edit struct {
	packedEndpoint
	add bool
}

// buildTree returns the tree of sorted entries.
func buildTree(all []packedEndpoint, width int) *tree {
	packed := make([]byte, 0, len(all)*width)
	for i := range all {
		packed = append(packed, all[i][:width]...)
	}
	return rooted(inLeaves(packed, width))
}

// len returns the number of entries.
func (t *tree) len() int {
	if t == nil {
		return 0
	}
	return int(t.count)
}

// fan returns the number of entries or children of the node itself.
func (t *tree) fan() int { return len(t.packed) / int(t.width) }

// at returns an entry, or the first one of a child.
func (t *tree) at(i int) string {
	w := int(t.width)
	return t.packed[i*w : (i+1)*w]
}

func (t *tree) kids() []*tree { return t.children[:t.fan()] }

// each yields the entries in order until yield returns false.
func (t *tree) each(yield func(string) bool) bool {
	if t == nil {
		return true
	}
	for i := range t.fan() {
		if t.children != nil {
			if !t.children[i].each(yield) {
				return false
			}
		} else if !yield(t.at(i)) {
			return false
		}
	}
	return true
}

// first returns the first entry with a prefix, "" if there is none.
func (t *tree) first(prefix string, work *uint64) string {
	for next := ""; t != nil; {
		// i is the first entry that is not less than the prefix. The entries with the
		// prefix begin in the child before it, or with it.
		i := sort.Search(t.fan(), func(i int) bool { return t.at(i) >= prefix })
		*work++
		if i < t.fan() {
			next = t.at(i)
		}
		if t.children != nil && i > 0 {
			t = t.children[i-1]
			continue
		}
		if strings.HasPrefix(next, prefix) {
			return next
		}
		return ""
	}
	return ""
}

// apply returns the tree after edits, which are sorted by entry. Removing an entry that
// does not exist does nothing.
func (t *tree) apply(edits []edit, width int, work *uint64) *tree {
	same := func(a, b edit) bool { return a.packedEndpoint == b.packedEndpoint }
	for len(edits) > 0 {
		if t == nil {
			t = &tree{width: uint8(width)}
		}
		// Duplicates may be in different leaves, so they are edited one by one.
		once := slices.CompactFunc(slices.Clone(edits), same)
		t = rooted(t.edited(once, work))
		if len(once) == len(edits) {
			break
		}
		var again []edit
		for i := 1; i < len(edits); i++ {
			if same(edits[i-1], edits[i]) {
				again = append(again, edits[i])
			}
		}
		edits = again
	}
	return t
}

// edited returns the nodes that replace a node, of its height. Each entry has at most one
// edit.
func (t *tree) edited(edits []edit, work *uint64) []*tree {
	*work += uint64(t.fan() + len(edits))
	if t.children == nil {
		return t.editedLeaf(edits)
	}
	out, small := make([]*tree, 0, t.fan()+1), false
	for i, kid := range t.kids() {
		mine := edits
		if i+1 < t.fan() && len(edits) > 0 {
			next := t.at(i + 1)
			cut := sort.Search(len(edits), func(j int) bool { return string(edits[j].packedEndpoint[:t.width]) >= next })
			mine, edits = edits[:cut], edits[cut:]
		}
		if len(mine) == 0 {
			out = append(out, kid)
			continue
		}
		for _, k := range kid.edited(mine, work) {
			small = small || k.fan() < minFan
			out = append(out, k)
		}
	}
	if small {
		out = joinSmall(out)
		*work += uint64(len(out))
	}
	return inParents(out)
}

func (t *tree) editedLeaf(edits []edit) []*tree {
	w, rest := int(t.width), t.packed
	packed := make([]byte, 0, len(rest)+len(edits)*w)
	for i := range edits {
		e := edits[i].packedEndpoint[:w]
		at := w * sort.Search(len(rest)/w, func(j int) bool { return rest[j*w:(j+1)*w] >= string(e) })
		packed, rest = append(packed, rest[:at]...), rest[at:]
		if edits[i].add {
			packed = append(packed, e...)
		} else if len(rest) > 0 && rest[:w] == string(e) {
			rest = rest[w:]
		}
	}
	return inLeaves(append(packed, rest...), w)
}

// pieces calls f with the bounds of even parts of n things, so that each part fits in a
// node.
func pieces(n int, f func(low, high int)) {
	parts := 1
	if n > maxFan {
		parts = (n + usualFan - 1) / usualFan
	}
	for i := range parts {
		f(n*i/parts, n*(i+1)/parts)
	}
}

// inLeaves distributes packed entries to leaves.
func inLeaves(packed []byte, width int) (out []*tree) {
	if len(packed) == 0 {
		return nil
	}
	pieces(len(packed)/width, func(low, high int) {
		out = append(out, &tree{packed: string(packed[low*width : high*width]), count: uint32(high - low), width: uint8(width)})
	})
	return out
}

// inParents distributes nodes of one height to parents.
func inParents(kids []*tree) (out []*tree) {
	if len(kids) == 0 {
		return nil
	}
	pieces(len(kids), func(low, high int) {
		w := kids[low].width
		p := &tree{children: new([maxFan]*tree), width: w, height: kids[low].height + 1}
		packed := make([]byte, 0, (high-low)*int(w))
		for i, k := range kids[low:high] {
			p.children[i] = k
			p.count += k.count
			packed = append(packed, k.at(0)...)
		}
		p.packed = string(packed)
		out = append(out, p)
	})
	return out
}

// rooted returns the root above nodes of one height. A root has more than one child.
func rooted(level []*tree) *tree {
	for len(level) > 1 {
		level = inParents(level)
	}
	if len(level) == 0 {
		return nil
	}
	t := level[0]
	for t.children != nil && t.fan() == 1 {
		t = t.children[0]
	}
	return t
}

// joinSmall joins nodes that have fewer than minFan entries with their neighbours. It
// modifies the list in place.
func joinSmall(level []*tree) []*tree {
	out := level[:0]
	for _, t := range level {
		if last := len(out) - 1; last >= 0 && min(t.fan(), out[last].fan()) < minFan {
			out = append(out[:last], joined(out[last], t)...)
		} else {
			out = append(out, t)
		}
	}
	return out
}

// joined distributes the content of two neighbours to one or two nodes.
func joined(a, b *tree) []*tree {
	if a.children == nil {
		return inLeaves([]byte(a.packed+b.packed), int(a.width))
	}
	return inParents(slices.Concat(a.kids(), b.kids()))
}
