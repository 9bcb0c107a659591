package kernel

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/ruleset"
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
	tables, err := ruleset.Parse("list.nft", string(text))
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, ours, Config{})
	for _, table := range tables {
		commit(t, c, tableOps(t, table)...)
	}
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
	sets := tableSets(t, tables[0])
	if len(dumped[0].Sets) != len(sets) {
		t.Errorf("%d sets are dumped, %d were declared", len(dumped[0].Sets), len(sets))
	}
	for _, s := range dumped[0].Sets {
		for _, want := range sets {
			if want.decl.Name == s.Decl.Name {
				checkDumped(t, want, s)
			}
		}
	}
}

// checkDumped compares a dumped set and its elements with the committed ones.
func checkDumped(t *testing.T, want packedSet, got Set) {
	t.Helper()
	if !want.decl.Equal(got.Decl) {
		t.Errorf("set %s is dumped as %+v, it was declared as %+v", want.decl.Name, got.Decl, want.decl)
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
	if diff := gocmp.Diff(words(want.decl, want.elements), words(got.Decl, got.Elements)); diff != "" {
		t.Errorf("set %s has other elements (-declared +dumped):\n%s", want.decl.Name, diff)
	}
}

// packedSet is a compiled set with its packed elements.
type packedSet struct {
	decl     *set.Set
	elements []set.Element
}

// tableSets compiles the sets and maps of a table.
func tableSets(t *testing.T, table nft.Table) []packedSet {
	t.Helper()
	var out []packedSet
	add := func(decl *set.Set, err error, elements []nft.Element) {
		if err != nil {
			t.Fatal(err)
		}
		s := packedSet{decl: decl}
		for _, e := range elements {
			p, err := decl.Pack(e)
			if err != nil {
				t.Fatal(err)
			}
			s.elements = append(s.elements, p)
		}
		if s.elements, err = decl.Normalize(s.elements); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	for i := range table.Sets {
		s := &table.Sets[i]
		decl, err := set.Compile(table.Family, s)
		add(decl, err, s.Elements)
	}
	for i := range table.Maps {
		m := &table.Maps[i]
		decl, err := set.CompileMap(table.Family, m)
		add(decl, err, m.Elements)
	}
	return out
}

// tableOps creates a table with its chains and sets.
func tableOps(t *testing.T, table nft.Table) []Op {
	t.Helper()
	id := table.ID()
	ops := []Op{AddTable{Table: id}}
	for i := range table.Chains {
		ops = append(ops, AddChain{Table: id, Chain: chain(table.Chains[i].Name)})
	}
	for _, s := range tableSets(t, table) {
		ops = append(ops, AddSet{Table: id, Set: s.decl})
		if len(s.elements) > 0 {
			ops = append(ops, AddElements{Table: id, Set: s.decl, Elements: s.elements})
		}
	}
	scope := setScope(tableSets(t, table))
	for i := range table.Chains {
		var last *Handle
		for _, r := range table.Chains[i].Rules {
			rule, err := compile.CompileRule(table.Family, r, scope)
			if err != nil {
				t.Fatal(err)
			}
			h := &Handle{}
			ops = append(ops, AddRule{Table: id, Chain: table.Chains[i].Name, Rule: rule, After: last, Handle: h})
			last = h
		}
	}
	return ops
}

// setScope is a compile.Scope with the sets of a table.
type setScope []packedSet

func (s setScope) Set(name string) (*set.Set, bool) {
	for _, p := range s {
		if p.decl.Name == name {
			return p.decl, true
		}
	}
	return nil, false
}
func (setScope) Chain(string) bool                  { return true }
func (setScope) Object(nft.ObjectKind, string) bool { return true }
func (setScope) Flowtable(string) bool              { return true }

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
