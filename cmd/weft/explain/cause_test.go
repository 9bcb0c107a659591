package explain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	policy "github.com/weft-proxy/weft/frontends/policy/render"
	services "github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// TestCauses finds the cause of every rule of weft's own that drops or rejects, and the rules of every cause.
func TestCauses(t *testing.T) {
	files, err := filepath.Glob("../../../frontends/services/render/testdata/*.nft")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	used := map[string]int{}
	for _, f := range append(files, "../../../nft/eval/testdata/stock/weft.nft") {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := ruleset.Parse(f, string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			for _, c := range table.Chains {
				for _, r := range c.Rules {
					if words := strings.Fields(r.Text); table.Name != services.Table && table.Name != policy.Table || words[len(words)-1] != "drop" && !slices.Contains(words, "reject") {
						continue
					}
					w := Way{Verdict: wordDrop, Steps: []Step{{Table: table.ID().String(), Chain: c.Name, Handle: 1, Rule: r.Text, Comment: r.Comment, Owner: "a/b"}}}
					why, remedy := w.why(nil)
					if remedy == "" || strings.HasPrefix(why, "fragment ") {
						t.Errorf("%s: rule %q of chain %s: %s. %s.", f, r.Text, c.Name, why, remedy)
					}
					used[remedy]++
				}
			}
		}
	}
	for _, c := range causes {
		// The golden files have no --policy-start=deny.
		if used[c.remedy] == 0 && c.text != "@known-pods" {
			t.Errorf("no rule has the cause %q", c.why)
		}
	}
}
