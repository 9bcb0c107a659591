package model

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// entryOf is a narrow entry that has a number for its address.
func entryOf(n uint32, marks byte) (e packedEndpoint) {
	binary.BigEndian.PutUint32(e[:], n)
	e[widthIPv4-1] = marks
	return e
}

// sound fails unless a list is built as it should be.
func sound(t *rapid.T, l *packedList) {
	if l == nil {
		return
	}
	n := 0
	for i, leaf := range l.leaves {
		fan := len(leaf) / widthIPv4
		if fan > maxLeaf || fan == 0 {
			t.Fatalf("leaf %d of %d has %d entries", i, len(l.leaves), fan)
		}
		n += fan
	}
	if n != l.len() {
		t.Fatalf("%d entries, but the list says %d", n, l.len())
	}
}

// entries returns what a list has.
func entries(n *packedList) (out []packedEndpoint) {
	n.each(func(s string) bool {
		var e packedEndpoint
		copy(e[:], s)
		out = append(out, e)
		return true
	})
	return out
}

// drawEdits are edits of about the entries of a list, most of them in one place.
func drawEdits(t *rapid.T, have []packedEndpoint) (out []edit) {
	n := rapid.SampledFrom([]int{0, 1, 1, 2, 20, 200, 2000}).Draw(t, "edits")
	from, span := rapid.Uint32Range(0, 3000).Draw(t, "from"), rapid.SampledFrom([]uint32{1, 50, 1000, 5000}).Draw(t, "span")
	add := rapid.SampledFrom([]int{0, 1, 5, 9, 10}).Draw(t, "added of ten")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for range n {
		e := edit{entryOf(from+r.Uint32N(span), byte(r.IntN(3))), r.IntN(10) < add}
		if !e.add && len(have) > 0 && r.IntN(4) > 0 {
			e.packedEndpoint = have[r.IntN(len(have))]
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b edit) int { return a.packedEndpoint.compare(&b.packedEndpoint) })
	return out
}

// apply does edits to a plain list.
func apply(all []packedEndpoint, edits []edit) []packedEndpoint {
	all = slices.Clone(all)
	for _, e := range edits {
		at, found := slices.BinarySearchFunc(all, e.packedEndpoint, comparePacked)
		switch {
		case e.add:
			all = slices.Insert(all, at, e.packedEndpoint)
		case found:
			all = slices.Delete(all, at, at+1)
		}
	}
	return all
}

// TestListIsPlain: after any history a list has what a plain one has, and so
// have all of its versions; two of them differ as the plain ones do.
func TestListIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		noExtras, lists := [][]packedEndpoint{nil}, []*packedList{nil}
		var work uint64
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			at := len(lists) - 1
			edits := drawEdits(t, noExtras[at])
			noExtras, lists = append(noExtras, apply(noExtras[at], edits)), append(lists, lists[at].apply(edits, widthIPv4, &work))
			sound(t, lists[at+1])
		}
		for i := range lists {
			if got := entries(lists[i]); !slices.Equal(got, noExtras[i]) || lists[i].len() != len(noExtras[i]) {
				t.Fatalf("version %d: %v, want %v", i, got, noExtras[i])
			}
		}
		i, j := rapid.IntRange(0, len(lists)-1).Draw(t, "one"), rapid.IntRange(0, len(lists)-1).Draw(t, "other")
		checkDiff(t, noExtras[i], noExtras[j], lists[i], lists[j])
		checkDiff(t, noExtras[i], noExtras[j], lists[i], newList(noExtras[j], widthIPv4))
		checkFirst(t, noExtras[i], lists[i])
	})
}

// checkDiff: what left and what came lead from one list to the other.
func checkDiff(t *rapid.T, was, now []packedEndpoint, a, b *packedList) {
	var work uint64
	out, equal := slices.Clone(was), true
	last := ""
	b.diff(a, func(s string, came bool) bool {
		var e packedEndpoint
		copy(e[:], s)
		if equal = false; s[:widthIPv4-1] < last {
			t.Fatalf("%x comes after %x", s, last)
		}
		last = s[:widthIPv4-1]
		out = apply(out, []edit{{e, came}})
		return true
	}, &work)
	if !slices.Equal(out, now) || equal != slices.Equal(was, now) {
		t.Fatalf("from %v: %v, want %v", was, out, now)
	}
	stopped := 0
	b.diff(a, func(string, bool) bool { stopped++; return false }, &work)
	if equal && stopped != 0 || !equal && stopped != 1 {
		t.Fatalf("%d calls after the first said stop", stopped)
	}
}

func checkFirst(t *rapid.T, all []packedEndpoint, n *packedList) {
	var work uint64
	for i := range uint32(3100) {
		e := entryOf(i, 0)
		prefix := string(e[:widthIPv4-1])
		want := ""
		if at, _ := slices.BinarySearchFunc(all, e, comparePacked); at < len(all) && strings.HasPrefix(string(all[at][:]), prefix) {
			want = string(all[at][:widthIPv4])
		}
		if got := n.first(prefix, &work); got != want {
			t.Fatalf("first of %x: %x, want %x", prefix, got, want)
		}
	}
}

// TestVersionsShare: one edit of many entries makes and visits few leaves, and so
// does the comparison of the versions before and after it.
func TestVersionsShare(t *testing.T) {
	for _, n := range []int{100, 10_000, 250_000} {
		all := make([]packedEndpoint, n)
		for i := range all {
			all[i] = entryOf(uint32(2*i), 0)
		}
		whole := newList(all, widthIPv4)
		var work uint64
		// The leaves, once to change and once to compare, and the entries of one or two, once to change and twice to compare.
		most := uint64(2*len(whole.leaves) + 6*maxLeaf)
		now := whole.apply([]edit{{entryOf(uint32(n/2*2), 0), false}, {entryOf(uint32(n/2*2+1), 0), true}}, widthIPv4, &work)
		made, moved := 0, 0
		for i, leaf := range now.leaves {
			if unsafe.StringData(leaf) != unsafe.StringData(whole.leaves[i]) {
				made++
			}
		}
		now.diff(whole, func(string, bool) bool { moved++; return true }, &work)
		now.first(string(all[n/2][:widthIPv4-1]), &work)
		if moved != 2 || made < 1 || made > 2 || work > most {
			t.Errorf("%d entries: %d differ, %d of %d leaves are new, work %d", n, moved, made, len(now.leaves), work)
		}
		t.Logf("%d entries: %d of %d leaves are new, work %d", n, made, len(now.leaves), work)
	}
}

// TestSmallLeavesAreJoined: a list that shrinks and moves does not keep a leaf for
// each few entries.
func TestSmallLeavesAreJoined(t *testing.T) {
	all := make([]packedEndpoint, 50_000)
	for i := range all {
		all[i] = entryOf(uint32(i), 0)
	}
	l := newList(all, widthIPv4)
	var work uint64
	r := rand.New(rand.NewPCG(1, 1))
	for _, i := range r.Perm(len(all))[:49_000] {
		l = l.apply([]edit{{packedEndpoint: all[i]}}, widthIPv4, &work)
	}
	if most := 2 * l.len() / minLeaf; l.len() != 1000 || len(l.leaves) > most {
		t.Errorf("%d leaves for %d entries, want at most %d", len(l.leaves), l.len(), most)
	}
}
