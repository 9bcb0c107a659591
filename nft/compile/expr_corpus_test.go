package compile

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
)

// TestAppendMatchesLibrary compares our marshalling of the library's
// expressions with its own, for all expressions of the corpora.
func TestAppendMatchesLibrary(t *testing.T) {
	known, compared := map[string]bool{}, 0
	for _, c := range readCorpora(t) {
		for _, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			for _, e := range rule.Exprs {
				k, ok := e.(expr.Library)
				if !ok {
					continue
				}
				got, err := expr.Marshal(uint8(c.family), e)
				if err != nil {
					t.Fatal(err)
				}
				want, err := google.Marshal(uint8(c.family), k.Any)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s: %s\n got %x\nwant %x", text, expr.Format(e), got, want)
				}
				known[reflect.TypeOf(k.Any).String()] = true
				compared++
			}
		}
	}
	if len(known) < 20 || compared < 100 {
		t.Errorf("compared %d expressions of %d kinds: want 20 kinds", compared, len(known))
	}
}

// TestDumpKnowsAll fails if an expression that rules compile to has no dump.
func TestDumpKnowsAll(t *testing.T) {
	for _, c := range readCorpora(t) {
		for _, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			// libnftnl itself has no name for ct id.
			dump := strings.ReplaceAll(rule.Dump(), "ct load unknown =>", "")
			if strings.Contains(dump, "unknown") {
				t.Errorf("%s: %s", text, rule.Dump())
			}
		}
	}
}
