package set

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// concatSet is an interval set of concatenations.
func concatSet() *Set {
	return nfttest.Must(Compile(nft.FamilyIP, &nft.Set{Name: "s", Type: "ipv4_addr . inet_service . ipv4_addr", Flags: []string{"interval"}}))
}

func packed(s *Set, key string) Element {
	return nfttest.Must(s.Pack(nft.Element{Key: key}))
}

// herringbone returns about n elements with the last two fields as tiles of a herringbone
// pattern: they do not overlap, and no line divides them in any field.
func herringbone(s *Set, n int) []Element {
	width := 1
	for width*width < 2*n {
		width++
	}
	var all []Element
	tile := func(x, y, x2, y2 int) {
		address := func(i int) string { return fmt.Sprintf("10.0.%d.%d", i>>8, i&255) }
		all = append(all, packed(s, fmt.Sprintf("10.0.0.1 . %d-%d . %s-%s", x, x2, address(y), address(y2))))
	}
	for x := 1; x <= width; x++ {
		for y := 1; y <= width; y++ {
			switch (x - y + 4*width) % 4 {
			case 0:
				tile(x, y, x+1, y)
			case 3:
				tile(x, y, x, y+1)
			}
		}
	}
	return all
}

// TestInterlockingElements has elements that cannot be divided: their comparison must not be
// quadratic. With all pairs compared, it needs half a minute.
func TestInterlockingElements(t *testing.T) {
	s := concatSet()
	all := herringbone(s, 40_000)
	if _, err := s.Normalize(all); err != nil {
		t.Errorf("%d tiles: %v", len(all), err)
	}
	for _, i := range []int{0, len(all) / 2, len(all) - 1} {
		e := all[i]
		wider := e
		// One more port on the left is in the tile beside it, or beside them all.
		key := []byte(e.Key)
		key[5]--
		wider.Key = string(key)
		all[i] = wider
		_, err := s.Normalize(all)
		if overlaps := anyOverlap(s, all, i); (err != nil) != overlaps {
			t.Errorf("tile %d made wider: error %v, and it overlaps: %t", i, err, overlaps)
		}
		all[i] = e
	}
}

// overlap reports whether a key matches both elements of a concatenation.
func overlap(s *Set, a, b Element) bool {
	at := 0
	for _, n := range s.Key.Fields {
		end := at + int(n)
		if a.Key[at:end] > b.KeyEnd[at:end] || b.Key[at:end] > a.KeyEnd[at:end] {
			return false
		}
		at += int(n+3) &^ 3
	}
	return true
}

// anyOverlap compares one element with all others.
func anyOverlap(s *Set, all []Element, i int) bool {
	for j := range all {
		if i != j && overlap(s, all[i], all[j]) {
			return true
		}
	}
	return false
}

// TestBoxes compares the overlaps of random boxes of one to four fields with those that a
// comparison of all pairs finds. Some of the boxes are as long as the space.
func TestBoxes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for fields := 1; fields <= 4; fields++ {
		typ := "inet_service"
		for range fields - 1 {
			typ += " . inet_service"
		}
		if fields == 1 {
			// A set of one field has no concatenations.
			typ += " . inet_proto"
		}
		s := nfttest.Must(Compile(nft.FamilyIP, &nft.Set{Name: "s", Type: typ, Flags: []string{"interval"}}))
		found := 0
		const rounds = 300
		for round := range rounds {
			// Boxes that are there already are left out in half of the rounds.
			space, longest := 8+r.IntN(4096), 1+r.IntN(8)
			var all []Element
			for range 20 + r.IntN(120) {
				key := ""
				for i := range fields {
					from := r.IntN(space)
					to := from + r.IntN(longest)
					if r.IntN(20) == 0 && fields > 1 {
						from, to = 0, space+longest
					}
					if i > 0 {
						key += " . "
					}
					key += fmt.Sprintf("%d-%d", from, to)
				}
				if fields == 1 {
					key += " . tcp"
				}
				e := packed(s, key)
				if all = append(all, e); round%2 == 0 && anyOverlap(s, all, len(all)-1) {
					all = all[:len(all)-1]
				}
			}
			if len(all) == 0 {
				continue
			}
			want := false
			for i := range all {
				want = want || anyOverlap(s, all, i)
			}
			a, b := newBoxes(s.Key.Fields, all).overlap()
			switch {
			case (a != nil) != want:
				t.Fatalf("%d fields, round %d: %v and %v overlap, want some: %t", fields, round, a, b, want)
			case a != nil && (a == b || !overlap(s, *a, *b)):
				t.Fatalf("%d fields, round %d: %v and %v do not overlap", fields, round, a, b)
			case a != nil:
				found++
			}
		}
		if found < rounds/10 || found > rounds*9/10 {
			t.Errorf("%d fields: %d of %d rounds have an overlap: want some of each", fields, found, rounds)
		}
	}
}

// TestOverlapsOfEqualFields has elements that differ in a single field, whichever that is:
// their comparison must not be quadratic. With all pairs compared, each case needs 20 s.
func TestOverlapsOfEqualFields(t *testing.T) {
	s := concatSet()
	const n = 40_000
	address := func(i int) string { return fmt.Sprintf("10.0.%d.%d", i>>8, i&255) }
	for name, format := range map[string]func(i int) string{
		"first":  func(i int) string { return address(i) + " . 80 . 10.0.0.1" },
		"second": func(i int) string { return fmt.Sprintf("10.0.0.1 . %d . 10.0.0.1", i) },
		"last":   func(i int) string { return "10.0.0.1 . 80 . " + address(i) },
	} {
		all := make([]Element, n)
		for i := range all {
			all[i] = packed(s, format(i))
		}
		if _, err := s.Normalize(all); err != nil {
			t.Errorf("%s field: %v", name, err)
		}
	}
}

// TestRepeatedElements tests that an element that is given twice is one, unless they differ.
func TestRepeatedElements(t *testing.T) {
	for _, decl := range []nft.Set{
		{Name: "hash", Type: "ipv4_addr", Flags: []string{"timeout"}},
		{Name: "ranges", Type: "ipv4_addr", Flags: []string{"interval", "timeout"}},
		{Name: "concat", Type: "ipv4_addr . inet_service", Flags: []string{"interval", "timeout"}},
	} {
		s := nfttest.Must(Compile(nft.FamilyIP, &decl))
		key := "10.0.0.1"
		if decl.Name == "concat" {
			key += " . 80"
		}
		for _, k := range []string{key, "*"} {
			plain := nfttest.Must(s.Pack(nft.Element{Key: k}))
			for _, tt := range []struct {
				change func(*Element)
				ok     bool
			}{
				{func(*Element) {}, true},
				{func(e *Element) { e.Timeout = 5 }, false},
				{func(e *Element) { e.Comment = "c" }, false},
				{func(e *Element) { e.State = "counter" }, false},
			} {
				other := plain
				tt.change(&other)
				out, err := s.Normalize([]Element{plain, other})
				if tt.ok != (err == nil) || tt.ok && len(out) != 1 || !tt.ok && !strings.Contains(err.Error(), "given twice") {
					t.Errorf("%s: %+v and %+v: %d elements, error %v", decl.Name, plain, other, len(out), err)
				}
			}
		}
	}
}
