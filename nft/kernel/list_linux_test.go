package kernel

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestListedAsNFT applies declarations and elements with nft(8) in one namespace
// and with weft in another, and compares nft's listings.
func TestListedAsNFT(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	text, err := os.ReadFile("testdata/list.nft")
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := nfttest.New(t), nfttest.New(t)
	theirs.Nft(t, string(text))
	c, table := open(t, ours, Config{}), declareFile(t, string(text))[0]
	commit(t, c, append(table.ops(), ruleOps(t, table)...)...)
	want, got := listed(theirs.ListRuleset(t)), listed(ours.ListRuleset(t))
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("nft lists another ruleset (-nft +weft):\n%s", diff)
	}
	if n := strings.Count(got, "\tset ") + strings.Count(got, "\tmap "); n < 40 {
		t.Errorf("only %d sets and maps are listed", n)
	}

	// Weft reads back its own declarations.
	dumped, err := c.Dump()
	if err != nil || len(dumped) != 1 {
		t.Fatalf("dump: %d tables, %v", len(dumped), err)
	}
	if len(dumped[0].Sets) != len(table.sets) {
		t.Errorf("%d sets are dumped, %d were declared", len(dumped[0].Sets), len(table.sets))
	}
	for _, s := range dumped[0].Sets {
		for _, want := range table.sets {
			if want.Decl.Name == s.Decl.Name {
				checkDumped(t, want, s)
			}
		}
	}
}

// checkDumped compares a dumped set and its elements with the committed ones.
func checkDumped(t *testing.T, want, got Set) {
	t.Helper()
	if !want.Decl.Equal(got.Decl) {
		t.Errorf("set %s is dumped as %+v, it was declared as %+v", want.Decl.Name, got.Decl, want.Decl)
	}
	words := func(s *set.Set, list []set.Element) map[string]string {
		out := map[string]string{}
		for _, e := range list {
			state := strings.Join(e.Stateful(), " ")
			if state == "" && len(s.Stateful) > 0 {
				state = strings.Join(s.Stateful, " ") // new elements get the statements of their set
			}
			out[s.FormatKey(e)] = s.FormatData(e) + " " + e.Comment + " " + state
		}
		return out
	}
	if diff := gocmp.Diff(words(want.Decl, want.Elements), words(got.Decl, got.Elements)); diff != "" {
		t.Errorf("set %s has other elements (-declared +dumped):\n%s", want.Decl.Name, diff)
	}
}

// ruleOps returns the ops that add the rules of a table.
func ruleOps(t *testing.T, d *declared) (ops []Op) {
	t.Helper()
	for _, c := range d.table.Chains {
		var last *Handle
		for _, r := range c.Rules {
			rule, err := compile.CompileRule(d.table.Family, r, d)
			if err != nil {
				t.Fatal(err)
			}
			add := AddRule{Table: d.table.ID(), Chain: c.Name, Rule: rule, After: last, Handle: &Handle{}}
			ops, last = append(ops, add), add.Handle
		}
	}
	return ops
}

// passing matches the parts of a listing that depend on the time or the owner.
var passing = regexp.MustCompile(`(?m) # progname .*$|^\tflags owner.*\n\n?`)

// expiring matches a remaining time. Only its unit is compared.
var expiring = regexp.MustCompile(`expires (\d+d)?(\d+h)?(\d+)m\S*`)

// listed returns a listing without the parts that differ for other reasons. The order of
// elements of a hash table depends on its seed.
func listed(text string) string {
	text = passing.ReplaceAllString(text, "")
	text = expiring.ReplaceAllString(text, "expires $1$2$3m")
	return sortElements(text)
}

// elementLists matches the elements of a set, which can fill several lines.
var elementLists = regexp.MustCompile(`(?s)elements = \{(.*?)\}`)

func sortElements(text string) string {
	return elementLists.ReplaceAllStringFunc(text, func(list string) string {
		inner := strings.TrimSuffix(strings.TrimPrefix(list, "elements = {"), "}")
		items := strings.Split(inner, ",")
		for i := range items {
			items[i] = strings.Join(strings.Fields(items[i]), " ")
		}
		slices.Sort(items)
		return "elements = {\n\t\t\t" + strings.Join(items, "\n\t\t\t") + "\n\t\t}"
	})
}

// TestMeterIsReplaced replaces a rule by one with a meter of the same name in one
// batch.
func TestMeterIsReplaced(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	c := open(t, ns, Config{})
	id, h := testTable(), &Handle{}
	commit(t, c, AddTable{Table: id}, AddChain{Table: id, Chain: chain("c")},
		AddRule{Table: id, Chain: "c", Rule: ruleOf(t, "meter m { ip saddr counter }", ""), Handle: h})
	commit(t, c, DeleteRule{Table: id, Chain: "c", Handle: h},
		AddRule{Table: id, Chain: "c", Rule: ruleOf(t, "meter m size 64 { ip daddr timeout 5s counter }", "")})
	contains(t, ns.ListRuleset(t), "meter m size 64 { ip daddr timeout 5s counter }")
}
