package decompile

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// FuzzRule decompiles any expressions: no panic, and a text that compiles to them. The seeds are rules of the corpora.
func FuzzRule(f *testing.F) {
	scopes := map[string]*set.Set{}
	anonymous := map[string]set.Anonymous{}
	n := 0
	for _, c := range corpora(f) {
		for name, s := range c.sets {
			scopes[name] = s
		}
		for _, r := range c.rules {
			rule, err := compile.CompileRule(c.family, r, c)
			if n++; err != nil || n%23 != 0 {
				continue
			}
			encoded, err := expr.Encode(c.inKernel(rule))
			if err != nil {
				f.Fatal(err)
			}
			for name, a := range c.anonymous {
				anonymous[name] = a
			}
			f.Add(uint8(c.family), encoded.Bytes)
		}
	}
	f.Fuzz(func(t *testing.T, family uint8, list []byte) {
		exprs, err := expr.Decode(list)
		if err != nil {
			return
		}
		scope := &table{family: nft.Family(family), sets: scopes, anonymous: anonymous}
		tree, err := Rule(scope.family, exprs, scope)
		if err != nil {
			if tree != nil {
				t.Fatalf("a rule and an error: %v", err)
			}
			return
		}
		if text := syntax.Print(tree); len(tree.Stmts) == 0 || text == "" {
			t.Fatalf("%d expressions became no text", len(exprs))
		}
	})
}
