package compile

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// TestSingleBytesAreNotSwapped tests the rules of all corpora: newer kernels refuse to change the
// order of a single byte, as nft before 1.1.2 does for sets of intervals.
func TestSingleBytesAreNotSwapped(t *testing.T) {
	rules := 0
	for _, c := range readCorpora(t) {
		for _, text := range c.rules {
			r, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			rules++
			if dump := r.Dump(); strings.Contains(dump, "2, 1)") && strings.Contains(dump, "byteorder") {
				t.Errorf("%s %s: a byte's order is changed:\n%s", c.family, text, dump)
			}
		}
	}
	if rules < 10_000 {
		t.Errorf("%d rules compile, want those of the corpora", rules)
	}
}
