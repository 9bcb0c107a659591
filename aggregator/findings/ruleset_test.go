package findings

import (
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/lint"
	nftobject "github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// TestAdoptedRulesAreNotJudged has a set that a rule may read whose text is not known, because the publisher has not
// come back since weft was started. Nothing is found then; a rule that is known and reads nothing is found.
func TestAdoptedRulesAreNotJudged(t *testing.T) {
	decl := &set.Set{Name: "blocked"}
	elements := []set.Element{{}}
	for text, want := range map[string]int{"": 0, "accept": 1} {
		rules := Ruleset([]*desired.Merged{{
			Status: desired.TableStatus{Table: nft.TableID{Family: nft.FamilyInet, Name: "t"}},
			Chains: []desired.MergedChain{{Decl: &nftobject.Chain{Name: "c"}, Rules: []desired.MergedRule{{Rule: &compile.Rule{Text: text}, Owner: "p/f"}}}},
		}}, nil)
		rules.Tables[0].Sets = []eval.Set{eval.NewSet(decl, elements)}
		if found := lint.Run(rules, lint.Options{}); len(found) != want {
			t.Errorf("rule %q: findings %v, want %d", text, found, want)
		}
	}
}
