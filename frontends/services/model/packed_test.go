package model

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// entryOf is an IPv4 entry that has a number for its address.
func entryOf(n uint32, marks byte) (e entry) {
	binary.BigEndian.PutUint32(e[:], n)
	e[widthIPv4-1] = marks
	return e
}

// entries returns the entries of a packed list.
func entries(list string) (out []entry) {
	for ; list != ""; list = list[widthIPv4:] {
		var e entry
		copy(e[:], list[:widthIPv4])
		out = append(out, e)
	}
	return out
}

func drawEntries(t *rapid.T, name string) (out []entry) {
	n := rapid.SampledFrom([]int{0, 1, 2, 20, 200, 2000}).Draw(t, name)
	span := rapid.SampledFrom([]uint32{1, 50, 1000, 5000}).Draw(t, "span")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for range n {
		out = append(out, entryOf(r.Uint32N(span), byte(r.IntN(3))))
	}
	return out
}

// TestReplaceIsPlain: a list with replaced entries is the list packed from the entries that are left.
func TestReplaceIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept, was, now := drawEntries(t, "kept"), drawEntries(t, "was"), drawEntries(t, "now")
		old := packSorted(slices.Concat(kept, was), widthIPv4)
		want := packSorted(slices.Concat(kept, now), widthIPv4)
		if !slices.IsSortedFunc(entries(old), compareEntries) || len(old) != (len(kept)+len(was))*widthIPv4 {
			t.Fatalf("%x is not sorted, or lacks entries", old)
		}
		got := replaceEntries(old, was, now, widthIPv4)
		if got != want {
			t.Fatalf("from %x: %x, want %x", old, got, want)
		}
		checkDiff(t, old, got)
		checkDiff(t, packSorted(was, widthIPv4), packSorted(now, widthIPv4))
		checkRepeats(t, got)
	})
}

// checkDiff: the differences lead from one list to the other, in order.
func checkDiff(t *rapid.T, was, now string) {
	out, last := was, ""
	diffPacked(was, now, widthIPv4, func(s string, came bool) {
		if s[:widthIPv4-1] < last {
			t.Fatalf("%x comes after %x", s, last)
		}
		last = s[:widthIPv4-1]
		if came {
			out = replaceEntries(out, nil, entries(s), widthIPv4)
		} else {
			out = replaceEntries(out, entries(s), nil, widthIPv4)
		}
	})
	if out != now {
		t.Fatalf("from %x: %x, want %x", was, out, now)
	}
}

func checkRepeats(t *rapid.T, list string) {
	want := slices.CompactFunc(entries(list), func(a, b entry) bool { return string(a[:widthIPv4-1]) == string(b[:widthIPv4-1]) })
	if got := withoutRepeats(list, widthIPv4); !slices.Equal(entries(got), want) {
		t.Fatalf("%x without repeats: %x, want %x", list, got, want)
	}
}
