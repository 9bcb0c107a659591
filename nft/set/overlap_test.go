package set

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// concatSet is an interval set of concatenations.
func concatSet(t testing.TB) *Set {
	t.Helper()
	s, err := Compile(nft.FamilyIP, &nft.Set{Name: "s", Type: "ipv4_addr . inet_service . ipv4_addr", Flags: []string{"interval"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func packed(t testing.TB, s *Set, key string) Element {
	t.Helper()
	e, err := s.Pack(nft.Element{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestOverlapsAreFound compares the overlaps of random elements with those that a
// comparison of all pairs finds.
func TestOverlapsAreFound(t *testing.T) {
	s, r := concatSet(t), rand.New(rand.NewPCG(1, 2))
	found := 0
	for round := range 300 {
		n := 20 + round%60
		var all []Element
		for range n {
			a, b, c := r.IntN(16), r.IntN(16), r.IntN(16)
			all = append(all, packed(t, s, fmt.Sprintf("10.0.0.%d-10.0.0.%d . %d-%d . 10.0.0.%d", a, a+r.IntN(2), b, b+r.IntN(2), c)))
		}
		want := false
		for i := range all {
			for j := range all[:i] {
				same := all[i].Key == all[j].Key && all[i].KeyEnd == all[j].KeyEnd
				want = want || !same && s.Overlap(all[i], all[j])
			}
		}
		if _, err := s.Normalize(all); (err != nil) != want {
			t.Fatalf("round %d: error %v, want one: %t", round, err, want)
		} else if want {
			found++
		}
	}
	if found < 10 || found > 290 {
		t.Errorf("%d of 300 rounds have an overlap: want some of each", found)
	}
}

// TestOverlapsOfEqualFields has elements that differ in a single field, whichever that is:
// their comparison must not be quadratic. With all pairs compared, each case needs 20 s.
func TestOverlapsOfEqualFields(t *testing.T) {
	s := concatSet(t)
	const n = 40_000
	address := func(i int) string { return fmt.Sprintf("10.0.%d.%d", i>>8, i&255) }
	for name, format := range map[string]func(i int) string{
		"first":  func(i int) string { return address(i) + " . 80 . 10.0.0.1" },
		"second": func(i int) string { return fmt.Sprintf("10.0.0.1 . %d . 10.0.0.1", i) },
		"last":   func(i int) string { return "10.0.0.1 . 80 . " + address(i) },
	} {
		all := make([]Element, n)
		for i := range all {
			all[i] = packed(t, s, format(i))
		}
		if a, b := s.findOverlap(pointers(all), 0, 0, 0); a != nil {
			t.Errorf("%s field: %v and %v overlap", name, a, b)
		}
	}
}

func pointers(all []Element) []*Element {
	out := make([]*Element, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

// TestRepeatedElements tests that an element that is given twice is one, unless they differ.
func TestRepeatedElements(t *testing.T) {
	for _, decl := range []nft.Set{
		{Name: "hash", Type: "ipv4_addr", Flags: []string{"timeout"}},
		{Name: "ranges", Type: "ipv4_addr", Flags: []string{"interval", "timeout"}},
		{Name: "concat", Type: "ipv4_addr . inet_service", Flags: []string{"interval", "timeout"}},
	} {
		s, err := Compile(nft.FamilyIP, &decl)
		if err != nil {
			t.Fatal(err)
		}
		key := "10.0.0.1"
		if decl.Name == "concat" {
			key += " . 80"
		}
		for _, k := range []string{key, "*"} {
			plain, err := s.Pack(nft.Element{Key: k})
			if err != nil {
				t.Fatal(err)
			}
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
