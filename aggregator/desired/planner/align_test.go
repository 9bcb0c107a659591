package planner

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft/compile"
)

// rule makes a rule that its text identifies.
func rule(text string) *compile.Rule {
	r := &compile.Rule{Text: text}
	sum := sha256.Sum256([]byte(text))
	copy(r.Fingerprint[:], sum[:])
	return r
}

func slots(text string) []*merge.Slot {
	var all []*merge.Slot
	for _, w := range strings.Fields(text) {
		r := rule(strings.TrimSuffix(w, "!"))
		all = append(all, &merge.Slot{Rule: r, Owner: "p/f", Adopted: strings.HasSuffix(w, "!")})
	}
	return all
}

func keepAll(*merge.Slot) bool { return true }

func TestAlign(t *testing.T) {
	tests := []struct {
		before, after string
		want          []int
	}{
		{"", "", nil},
		{"a b c", "a b c", []int{0, 1, 2}},
		{"a b c", "a c", []int{0, 2}},
		{"a c", "a b c", []int{0, -1, 1}},
		{"a b c d", "d a b c", []int{-1, 0, 1, 2}},
		{"a a a", "a a", []int{0, 1}},
		{"x", "y", []int{-1}},
		{"a b x c d", "a y b c z d", []int{0, -1, 1, 3, -1, 4}},
	}
	for _, tt := range tests {
		_, got := align(slots(tt.before), slots(tt.after), keepAll)
		if !slices.Equal(got, tt.want) {
			t.Errorf("align(%q, %q) = %v, want %v", tt.before, tt.after, got, tt.want)
		}
	}
}

// TestAlignIsLongest compares with the textbook's dynamic programme.
func TestAlignIsLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 12)
		before, after := slots(strings.Join(draw.Draw(t, "before"), " ")), slots(strings.Join(draw.Draw(t, "after"), " "))
		_, match := align(before, after, keepAll)
		last, n := -1, 0
		for a, b := range match {
			if b < 0 {
				continue
			}
			if b <= last || idOf(before[b]) != idOf(after[a]) {
				t.Fatalf("match %v is not a common subsequence", match)
			}
			last = b
			n++
		}
		if want := longestByTable(before, after); n != want {
			t.Fatalf("match %v keeps %d, want %d", match, n, want)
		}
	})
}

func longestByTable(a, b []*merge.Slot) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			if idOf(a[i]) == idOf(b[j]) {
				table[i+1][j+1] = table[i][j] + 1
			} else {
				table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			}
		}
	}
	return table[len(a)][len(b)]
}

func TestAlignRefused(t *testing.T) {
	before := slots("a b c")
	_, match := align(before, slots("a b c"), func(r *merge.Slot) bool { return r.Rule.Text != "b" })
	if want := []int{0, -1, 2}; !slices.Equal(match, want) {
		t.Errorf("match %v, want %v", match, want)
	}
}

func TestAlignAdopted(t *testing.T) {
	before := slots("x! a y! b")
	x, y := before[0], before[2]
	gone := slots("gone!")[0]
	// y before x cannot be had, and what is gone cannot come back.
	after, match := align(before, []*merge.Slot{y, slots("b")[0], gone, x, slots("b")[0]}, keepAll)
	if len(after) != 4 || after[0] != x || after[2] != y {
		t.Fatalf("wanted rules %v, want x b y b", after)
	}
	if want := []int{0, -1, 2, 3}; !slices.Equal(match, want) {
		t.Errorf("match %v, want %v", match, want)
	}
}

func TestAlignManyEqualRules(t *testing.T) {
	one := rule("same")
	list := func(n int, lead string) []*merge.Slot {
		all := []*merge.Slot{{Rule: rule(lead)}}
		for range n {
			all = append(all, &merge.Slot{Rule: one})
		}
		return append(all, &merge.Slot{Rule: rule(lead + " end")})
	}
	_, match := align(list(3_000, "x"), list(2_990, "y"), keepAll)
	kept := 0
	for _, b := range match {
		if b >= 0 {
			kept++
		}
	}
	if kept != 2_990 {
		t.Errorf("%d of 2990 equal rules stay", kept)
	}
}
