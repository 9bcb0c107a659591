package linediff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestUnified(t *testing.T) {
	for _, test := range []struct{ name, a, b, want string }{
		{"equal", "a\nb\n", "a\nb\n", ""},
		{"changed", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"added", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"removed", "a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"moved", "a\nb\nc\n", "c\na\nb\n", "@@ -1,3 +1,3 @@\n+c\n a\n b\n-c\n"},
		{"repeated", "x\nx\n", "x\nx\nx\n", "@@ -1,2 +1,3 @@\n x\n x\n+x\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Unified(test.a, test.b); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

// TestCompareKeepsBothTexts compares random texts: the lines of each are in the result, in
// their order.
func TestCompareKeepsBothTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	for range 2000 {
		text := func() []string {
			lines := make([]string, 1+rnd.IntN(12))
			for i := range lines {
				lines[i] = fmt.Sprint(rnd.IntN(10))
			}
			return lines
		}
		a, b := text(), text()
		var gotA, gotB []string
		for _, l := range compare(a, b) {
			if l.sign != '+' {
				gotA = append(gotA, l.text)
			}
			if l.sign != '-' {
				gotB = append(gotB, l.text)
			}
		}
		if !slices.Equal(a, gotA) || !slices.Equal(b, gotB) {
			t.Fatalf("%s and %s became %s and %s", strings.Join(a, ","), strings.Join(b, ","), strings.Join(gotA, ","), strings.Join(gotB, ","))
		}
	}
}
