package model

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// entryOf is a narrow entry that has a number for its address.
func entryOf(n uint32, marks byte) (e packedEndpoint) {
	binary.BigEndian.PutUint32(e[:], n)
	e[widthIPv4-1] = marks
	return e
}

// sound fails unless a tree is built as it should be.
func sound(t *rapid.T, n *tree, root bool) {
	if n == nil {
		return
	}
	if n.fan() > maxFan || n.fan() == 0 || root && n.children != nil && n.fan() == 1 {
		t.Fatalf("a node has %d parts", n.fan())
	}
	if n.children == nil {
		if n.height != 0 || int(n.count) != n.fan() {
			t.Fatalf("leaf %+v", n)
		}
		return
	}
	count := uint32(0)
	for i, k := range n.kids() {
		count += k.count
		if k.height != n.height-1 || k.at(0) != n.at(i) {
			t.Fatalf("child %d of %+v: %+v", i, n, k)
		}
		sound(t, k, false)
	}
	if count != n.count {
		t.Fatalf("%d entries, but the node says %d", count, n.count)
	}
}

// entries lists a tree.
func entries(n *tree) (out []packedEndpoint) {
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

// TestTreeIsAList: after any history a tree has what a plain list has, and so
// have all of its versions; two of them differ as the lists do.
func TestTreeIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		noExtras, trees := [][]packedEndpoint{nil}, []*tree{nil}
		var work uint64
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			at := len(trees) - 1
			edits := drawEdits(t, noExtras[at])
			noExtras, trees = append(noExtras, apply(noExtras[at], edits)), append(trees, trees[at].apply(edits, widthIPv4, &work))
			sound(t, trees[at+1], true)
		}
		for i := range trees {
			if got := entries(trees[i]); !slices.Equal(got, noExtras[i]) || trees[i].len() != len(noExtras[i]) {
				t.Fatalf("version %d: %v, want %v", i, got, noExtras[i])
			}
		}
		i, j := rapid.IntRange(0, len(trees)-1).Draw(t, "one"), rapid.IntRange(0, len(trees)-1).Draw(t, "other")
		checkDiff(t, noExtras[i], noExtras[j], trees[i], trees[j])
		checkDiff(t, noExtras[i], noExtras[j], trees[i], buildTree(noExtras[j], widthIPv4))
		checkFirst(t, noExtras[i], trees[i])
	})
}

// checkDiff: what left and what came lead from one list to the other.
func checkDiff(t *rapid.T, was, now []packedEndpoint, a, b *tree) {
	var work uint64
	out, equal := slices.Clone(was), true
	last := ""
	diffTrees(a, b, func(s string, came bool) bool {
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
	diffTrees(a, b, func(string, bool) bool { stopped++; return false }, &work)
	if equal && stopped != 0 || !equal && stopped != 1 {
		t.Fatalf("%d calls after the first said stop", stopped)
	}
}

func checkFirst(t *rapid.T, all []packedEndpoint, n *tree) {
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

// TestVersionsShare: one edit of many entries makes and visits few nodes, and so
// does the comparison of the versions before and after it.
func TestVersionsShare(t *testing.T) {
	for _, n := range []int{100, 10_000, 250_000} {
		all := make([]packedEndpoint, n)
		for i := range all {
			all[i] = entryOf(uint32(2*i), 0)
		}
		whole := buildTree(all, widthIPv4)
		nodes := make(map[*tree]bool)
		mark(whole, nodes, func(*tree) {})
		var work uint64
		// A path of at most 4 nodes, each with maxFan parts, once to change it and
		// twice to compare.
		const most = 4 * maxFan * 3
		now := whole.apply([]edit{{entryOf(uint32(n/2*2), 0), false}, {entryOf(uint32(n/2*2+1), 0), true}}, widthIPv4, &work)
		made, moved := 0, 0
		mark(now, nodes, func(*tree) { made++ })
		diffTrees(whole, now, func(string, bool) bool { moved++; return true }, &work)
		now.first(string(all[n/2][:widthIPv4-1]), &work)
		if moved != 2 || made > 5 || work > most || int(whole.height) > 3 {
			t.Errorf("%d entries: %d differ, %d of %d nodes are new, work %d, height %d", n, moved, made, len(nodes), work, whole.height)
		}
		t.Logf("%d entries: %d of %d nodes are new, work %d", n, made, len(nodes), work)
	}
}

// mark adds the nodes of a tree, and calls f for those that are not known.
func mark(t *tree, known map[*tree]bool, f func(*tree)) {
	if known[t] {
		return
	}
	known[t] = true
	f(t)
	if t.children != nil {
		for _, k := range t.kids() {
			mark(k, known, f)
		}
	}
}

// TestSmallNodesAreJoined: a tree that shrinks and moves does not keep a node for
// each few entries.
func TestSmallNodesAreJoined(t *testing.T) {
	all := make([]packedEndpoint, 50_000)
	for i := range all {
		all[i] = entryOf(uint32(i), 0)
	}
	n := buildTree(all, widthIPv4)
	var work uint64
	r := rand.New(rand.NewPCG(1, 1))
	for _, i := range r.Perm(len(all))[:49_000] {
		n = n.apply([]edit{{packedEndpoint: all[i]}}, widthIPv4, &work)
	}
	nodes := 0
	mark(n, make(map[*tree]bool), func(*tree) { nodes++ })
	if most := 2 * n.len() / minFan; n.len() != 1000 || nodes > most {
		t.Errorf("%d nodes for %d entries, want at most %d", nodes, n.len(), most)
	}
}
