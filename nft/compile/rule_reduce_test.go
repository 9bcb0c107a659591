package compile

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestComparisonsAreNotMergedAcrossAnEffect tests that a statement stays between two comparisons.
func TestComparisonsAreNotMergedAcrossAnEffect(t *testing.T) {
	scope := declared.Parse(`table ip t {
		set banned { type ipv4_addr; flags dynamic; }
		set plain { type ipv4_addr; }
		set counted { type ipv4_addr; counter; }
	}`)[0]
	for between, merged := range map[string]bool{
		"":                         true,
		"ip saddr @plain":          true,
		"ip saddr { 10.0.0.1 }":    true,
		"meta mark 1":              true,
		"numgen random mod 2 0":    true,
		"counter":                  false,
		"log":                      false,
		"limit rate 1/second":      false,
		"meta mark set 1":          false,
		"ip dscp set 1":            false,
		"quota over 1 mbytes":      false,
		"notrack":                  false,
		"add @banned { ip saddr }": false,
		"ip saddr @counted":        false,
		"ip saddr { 10.0.0.1 counter, 10.0.0.2 counter }": false,
		"numgen inc mod 2 0":                              false,
	} {
		rule, err := CompileRule(nft.FamilyIP, nft.Rule{Text: "tcp dport 22 " + between + " tcp sport 5 accept"}, scope)
		if err != nil {
			t.Errorf("%s: %v", between, err)
			continue
		}
		want := 2
		if merged {
			want = 1
		}
		if got := strings.Count(rule.Dump(), "transport header"); got != want {
			t.Errorf("%q between two comparisons: the ports are loaded %d times, want %d:\n%s", between, got, want, rule.Dump())
		}
	}
	// Those on one side of the statement are merged as before.
	rule := nfttest.Must(CompileRule(nft.FamilyIP, nft.Rule{Text: "tcp sport 5 tcp dport 22 counter tcp sport 5 tcp dport 22"}, nil))
	if strings.Count(rule.Dump(), "transport header") != 2 {
		t.Errorf("comparisons on both sides of a statement:\n%s", rule.Dump())
	}
}

// mergedAcross reports whether nft 1.0.6 made one comparison of two that a statement
// separates, with fewer loads than ours: it forgets the statement if there is only one
// comparison before it. This is the only difference from nft that is wanted.
func mergedAcross(c *corpus, text, ours, theirs string) bool {
	rule, err := syntax.ParseRule(c.family, text)
	if err != nil || strings.Count(theirs, "payload ") >= strings.Count(ours, "payload ") {
		return false
	}
	before, between := false, false
	for _, s := range rule.Stmts {
		if _, comparison := s.(*syntax.Match); !comparison {
			between = before
		} else if between {
			return true
		} else {
			before = true
		}
	}
	return false
}
