package compile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
)

// TestDecodeIsTheInverseOfEncode decodes the expressions of all corpora, and compares what
// they are listed and encoded as.
func TestDecodeIsTheInverseOfEncode(t *testing.T) {
	rules := 0
	for _, c := range readCorpora(t) {
		for _, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			b, err := rule.Encode(0)
			if err != nil {
				t.Fatal(err)
			}
			exprs, err := expr.Decode(b)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			rules++
			var got strings.Builder
			for _, e := range exprs {
				got.WriteString("  [ " + expr.Format(e) + " ]\n")
			}
			again, err := expr.Encode(exprs)
			if err != nil || got.String() != rule.Dump() || !bytes.Equal(again.Bytes, b) {
				t.Errorf("%s: %v\n got\n%s%x\nwant\n%s%x", text, err, got.String(), again.Bytes, rule.Dump(), b)
			}
		}
	}
	if rules < 1000 {
		t.Errorf("compared %d rules, want 1000", rules)
	}
}
