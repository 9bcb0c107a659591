package model

import (
	"cmp"
	"sort"
	"strings"
)

// packedList is an immutable sorted list of packed endpoints of one width, possibly with duplicates. nil
// is empty. Versions share equal leaves. Methods add the visited entries and leaves to work.
type packedList struct {
	// strings of up to maxLeaf entries, without pointers for the garbage collector
	leaves []string
	count  uint32
	width  uint8
}

const (
	// maximum entries per leaf
	maxLeaf = 512
	// minimum after a change, except in a single leaf
	minLeaf = 128
	// maximum after a split, with room for more
	usualLeaf = 384
)

type edit struct {
	packedEndpoint
	add bool
}

func newList(all []packedEndpoint, width int) *packedList {
	packed := make([]byte, 0, len(all)*width)
	for i := range all {
		packed = append(packed, all[i][:width]...)
	}
	return packList(appendLeaves(nil, packed, width), width)
}

func packList(leaves []string, width int) *packedList {
	if len(leaves) == 0 {
		return nil
	}
	n := 0
	for _, leaf := range leaves {
		n += len(leaf)
	}
	return &packedList{leaves: leaves, count: uint32(n / width), width: uint8(width)}
}

// appendLeaves distributes packed entries evenly.
func appendLeaves(leaves []string, packed []byte, width int) []string {
	n, parts := len(packed)/width, 1
	if n == 0 {
		return leaves
	}
	if n > maxLeaf {
		parts = (n + usualLeaf - 1) / usualLeaf
	}
	for i := range parts {
		leaves = append(leaves, string(packed[n*i/parts*width:n*(i+1)/parts*width]))
	}
	return leaves
}

func (l *packedList) len() int {
	if l == nil {
		return 0
	}
	return int(l.count)
}

// each yields the entries in order until yield returns false.
func (l *packedList) each(yield func(string) bool) {
	if l == nil {
		return
	}
	w := int(l.width)
	for _, leaf := range l.leaves {
		for ; leaf != ""; leaf = leaf[w:] {
			if !yield(leaf[:w]) {
				return
			}
		}
	}
}

func (l *packedList) first(prefix string, work *uint64) string {
	if l == nil {
		return ""
	}
	*work++
	i, w := leafOf(l.leaves, prefix), int(l.width)
	at := before(l.leaves[i], prefix, w)
	if at == len(l.leaves[i]) && i+1 < len(l.leaves) {
		i, at = i+1, 0
	}
	if rest := l.leaves[i][at:]; strings.HasPrefix(rest, prefix) {
		return rest[:w]
	}
	return ""
}

// leafOf returns the leaf for an entry. The first of several equal entries is in this leaf or begins the
// next one.
func leafOf(leaves []string, entry string) int {
	return max(0, sort.Search(len(leaves), func(i int) bool { return leaves[i] >= entry })-1)
}

// before returns the bytes of a leaf's entries less than entry.
func before(leaf, entry string, width int) int {
	return width * sort.Search(len(leaf)/width, func(i int) bool { return leaf[i*width:(i+1)*width] >= entry })
}

// apply returns the list after sorted edits. Removing a missing entry has no effect.
func (l *packedList) apply(edits []edit, width int, work *uint64) *packedList {
	if len(edits) == 0 {
		return l
	}
	var old []string
	if l != nil {
		old = l.leaves
	}
	*work += uint64(len(old) + len(edits))
	leaves := make([]string, 0, len(old)+1)
	for len(edits) > 0 {
		entry := string(edits[0].packedEndpoint[:width])
		rest := ""
		if len(old) > 0 {
			at := leafOf(old, entry)
			leaves = append(leaves, old[:at]...)
			rest, old = old[at], old[at+1:]
		}
		packed := make([]byte, 0, len(rest)+len(edits)*width)
		for len(edits) > 0 {
			entry = string(edits[0].packedEndpoint[:width])
			for len(old) > 0 && (strings.HasPrefix(old[0], entry) || len(packed)+len(rest) < minLeaf*width) {
				rest, old = rest+old[0], old[1:]
			}
			if len(old) > 0 && old[0] < entry {
				break // in the next leaf
			}
			at := before(rest, entry, width)
			packed, rest = append(packed, rest[:at]...), rest[at:]
			switch end := len(packed) - width; {
			case edits[0].add:
				packed = append(packed, entry...)
			case strings.HasPrefix(rest, entry):
				rest = rest[width:]
			case end >= 0 && string(packed[end:]) == entry:
				packed = packed[:end]
			}
			edits = edits[1:]
		}
		packed = append(packed, rest...)
		*work += uint64(len(packed) / width)
		if last := len(leaves) - 1; len(packed) < minLeaf*width && last >= 0 {
			packed, leaves = append([]byte(leaves[last]), packed...), leaves[:last]
		} else if len(packed) < minLeaf*width && len(old) > 0 {
			packed, old = append(packed, old[0]...), old[1:]
		}
		leaves = appendLeaves(leaves, packed, width)
	}
	return packList(append(leaves, old...), width)
}

// cursor is a position in a list. rest precedes leaves.
type cursor struct {
	rest   string
	leaves []string
}

func (l *packedList) cursor() (c cursor) {
	if l != nil {
		c.leaves = l.leaves
	}
	return c
}

// open enters the next leaf if needed. It returns false at the end.
func (c *cursor) open(width int, work *uint64) bool {
	if c.rest == "" && len(c.leaves) > 0 {
		c.rest, c.leaves = c.leaves[0], c.leaves[1:]
		*work += uint64(len(c.rest) / width)
	}
	return c.rest != ""
}

func (c *cursor) take(width int) string {
	e := c.rest[:width]
	c.rest = c.rest[width:]
	return e
}

// diff calls f in order for entries in only one list; came is true for entries of l. Of entries that
// differ only in flags, the entry of was comes first. diff stops when f returns false, and skips shared
// leaves.
func (l *packedList) diff(was *packedList, f func(entry string, came bool) bool, work *uint64) {
	if l == was {
		*work++
		return
	}
	x, y, w := was.cursor(), l.cursor(), int(cmp.Or(l, was).width)
	for {
		for x.rest == "" && y.rest == "" && len(x.leaves) > 0 && len(y.leaves) > 0 && x.leaves[0] == y.leaves[0] {
			*work++
			x.leaves, y.leaves = x.leaves[1:], y.leaves[1:]
		}
		left, right := x.open(w, work), y.open(w, work)
		more := true
		switch key := w - 1; {
		case !left && !right:
			return
		case !right:
			more = f(x.take(w), false)
		case !left:
			more = f(y.take(w), true)
		case x.rest[:w] == y.rest[:w]:
			x.take(w)
			y.take(w)
			// Most entries of two versions of a leaf are equal.
			for n := 16 * w; len(x.rest) >= n && len(y.rest) >= n && x.rest[:n] == y.rest[:n]; {
				x.take(n)
				y.take(n)
			}
		case x.rest[:key] <= y.rest[:key]:
			more = f(x.take(w), false)
		default:
			more = f(y.take(w), true)
		}
		if !more {
			return
		}
	}
}
