package compile

import (
	"sync"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestSameAsNFT compiles the corpora and compares the expressions and the
// anonymous sets with those that nft(8) makes from the same text. What nft
// refuses must be refused.
func TestSameAsNFT(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	accepted, same, separated, refused, alike := 0, 0, 0, 0, 0
	var mu sync.Mutex // of the numbers
	compare := func(t *testing.T, c *corpus) {
		theirs := nfttest.New(t).Netlink(t, c.ruleset())
		mu.Lock()
		defer mu.Unlock()
		for i, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			want, ok := theirs[i]
			switch {
			case ok && err != nil:
				accepted++
				t.Errorf("%s\n  nft accepts it, we do not: %v", text, err)
			case ok:
				accepted++
				switch got := rule.DumpSets() + rule.Dump(); {
				case got == want:
					same++
				case mergedAcross(c, text, got, want):
					separated++
				default:
					t.Errorf("%s\n--- nft\n%s+++ ours\n%s", text, want, got)
				}
			case err == nil:
				refused++
				t.Errorf("%s\n  nft refuses it, we do not:\n%s", text, rule.DumpSets()+rule.Dump())
			default:
				refused++
				alike++
			}
		}
	}
	t.Run("corpora", func(t *testing.T) {
		for _, c := range readCorpora(t) {
			t.Run(c.name, func(t *testing.T) { t.Parallel(); compare(t, c) })
		}
	})
	t.Logf("nft accepts %d rules, %d are identical, in %d it merges comparisons that a statement separates; it refuses %d, we refuse %d of them", accepted, same, separated, refused, alike)
	if separated == 0 {
		t.Error("no rule shows how nft merges comparisons: the corpora want one")
	}
}

// TestPrintedForNFT gives nft the canonical text of the rules: it must make the
// same of it.
func TestPrintedForNFT(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	rules := 0
	for _, c := range readCorpora(t) {
		printed := *c
		printed.rules = nil
		var want []string
		for _, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			printed.rules = append(printed.rules, rule.Text)
			want = append(want, rule.DumpSets()+rule.Dump())
		}
		got := ns.Netlink(t, printed.ruleset())
		for i, text := range printed.rules {
			rules++
			if got[i] != want[i] && !mergedAcross(c, text, want[i], got[i]) {
				t.Errorf("%s: nft makes another rule of the canonical text\n--- nft\n%s+++ want\n%s", text, got[i], want[i])
			}
		}
	}
	t.Logf("nft reads the canonical text of %d rules", rules)
}
