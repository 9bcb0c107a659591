package compile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
)

// TestCorpora compiles all corpora. Decoding is the inverse of encoding, every expression has a name,
// and no rule changes the order of a single byte, which newer kernels refuse.
func TestCorpora(t *testing.T) {
	rules := 0
	for _, c := range readCorpora(t) {
		for _, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			rules++
			dump := rule.Dump()
			if strings.Contains(dump, "2, 1)") && strings.Contains(dump, "byteorder") {
				t.Errorf("%s %s: the order of a byte is changed:\n%s", c.family, text, dump)
			}
			// libnftnl itself has no name for ct id.
			if strings.Contains(strings.ReplaceAll(dump, "ct load unknown =>", ""), "unknown") {
				t.Errorf("%s: %s", text, dump)
			}
			b, err := rule.Encode(0)
			if err != nil {
				t.Fatal(err)
			}
			decoded := &Rule{}
			if decoded.Exprs, err = expr.Decode(b); err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			again, err := decoded.Encode(0)
			if err != nil || decoded.Dump() != dump || !bytes.Equal(again, b) {
				t.Errorf("%s: %v\n got\n%s%x\nwant\n%s%x", text, err, decoded.Dump(), again, dump, b)
			}
		}
	}
	if rules < 10_000 {
		t.Errorf("%d rules compile, want the rules of the corpora", rules)
	}
}
