package ruleset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// findRule returns rule number n (from 0) of a chain as it is written in a file.
func findRule(text string, table nft.TableID, chain string, n int) (*Rule, bool) {
	_, positions, _ := ParsePositions("", text)
	return positions.Rule(table, chain, n)
}

// TestFindRuleAfterChanges finds rules where they ended up.
func TestFindRuleAfterChanges(t *testing.T) {
	const text = `define p = 80
table ip x { chain c { accept; drop; } }
flush chain ip x c
add rule ip x c tcp dport $p accept
insert rule ip x c index 0   counter
insert rule ip x c  ct state new drop
`
	id := nft.TableID{Family: nft.FamilyIP, Name: "x"}
	for n, want := range []string{"ct state new drop", "counter", "tcp dport 80 accept"} {
		r, ok := findRule(text, id, "c", n)
		if !ok || r.Text != want {
			t.Fatalf("rule %d is %+v, want %q", n, r, want)
		}
		if e := r.Error(&syntax.Error{Pos: syntax.Pos{Line: 1, Column: 1}}); e.Pos.Line != 6-n {
			t.Errorf("rule %d is at %s", n, e.Pos)
		}
	}
	for _, n := range []int{-1, 3} {
		if _, ok := findRule(text, id, "c", n); ok {
			t.Errorf("there is a rule %d", n)
		}
	}
	if _, ok := findRule(text+"flush ruleset\n", id, "c", 0); ok {
		t.Error("a flushed rule is found")
	}
}

// TestHostileChanges parses commands that could each cost as much as the whole file.
func TestHostileChanges(t *testing.T) {
	const n = 20000
	var tables, elements strings.Builder
	for i := range n {
		fmt.Fprintf(&tables, "table inet t%d { chain c { drop; }; }\n", i)
		fmt.Fprintf(&elements, "%d, ", i)
	}
	for name, text := range map[string]string{
		"flush ruleset":        tables.String() + strings.Repeat("flush ruleset\n", n),
		"flush ruleset ip":     tables.String() + strings.Repeat("flush ruleset ip\n", n),
		"delete tables":        tables.String() + strings.Repeat("table x; delete table x\n", n),
		"flush table":          "table x { chain c { drop; }; }\n" + strings.Repeat("flush table x\nadd rule x c drop\n", n),
		"insert":               "table x { chain c { }; }\n" + strings.Repeat("insert rule x c drop\n", n),
		"delete element":       "table x { set s { type mark; elements = { " + elements.String() + "}; }; }\n" + strings.Repeat("delete element x s { 7 }\nadd element x s { 7 }\n", n),
		"undeclared":           strings.Repeat("flush table x\n", n) + "table x",
		"braces":               strings.Repeat("{", 64*n),
		"define in deep block": strings.Repeat("table x {", n) + strings.Repeat("define a = 1\n", n),
	} {
		start := time.Now()
		_, _ = Parse("x", text) // whether it is right does not matter
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s takes %s for %d bytes", name, d, len(text))
		}
	}
}

// TestIndexBound refuses an index in a long chain.
func TestIndexBound(t *testing.T) {
	text := "table x { chain c { }; }\n" + strings.Repeat("add rule x c drop\n", maxIndexed) + "insert rule x c index 0 drop\n"
	if _, err := Parse("x", text); err == nil || !strings.Contains(err.Error(), "index is not possible in a chain of more than 4096 rules") {
		t.Errorf("got %v", err)
	}
}
