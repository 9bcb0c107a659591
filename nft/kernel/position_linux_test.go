package kernel

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// comments lists the comments of a chain's rules in order.
func comments(t testing.TB, ns *nfttest.NS, chain string) string {
	t.Helper()
	list := ns.Run(t, "nft", "list", "chain", "ip", "weft", chain)
	var out []string
	for _, m := range regexp.MustCompile(`comment "([^"]*)"`).FindAllStringSubmatch(list, -1) {
		out = append(out, m[1])
	}
	return strings.Join(out, " ")
}

func TestRulePositions(t *testing.T) {
	ns, c := connect(t, Config{})
	id := testTable()
	handles := map[string]*Handle{}
	add := func(chain, name, after string) Op {
		h := &Handle{}
		handles[name] = h
		var place *Handle
		if after != "" {
			place = handles[after]
		}
		return AddRule{Table: id, Chain: chain, Rule: ruleOf("counter", name), Owner: "o", After: place, Handle: h}
	}
	base := &object.Chain{Name: "b", Base: &object.Base{Type: "filter", Hook: 1, Priority: 0}}
	check := func(chain, want string) {
		t.Helper()
		if got := comments(t, ns, chain); got != want {
			t.Errorf("chain %s = %s, want %s", chain, got, want)
		}
	}
	// New chains: rules at the end, and rules inserted before and between them.
	commit(t, c, AddTable{Table: id}, AddChain{Table: id, Chain: chain("a")}, AddChain{Table: id, Chain: base},
		add("a", "1", ""), add("a", "2", "1"), add("a", "3", "2"), add("a", "0", ""), add("a", "1.5", "1"), add("a", "4", "3"),
		add("b", "x", ""), add("b", "y", "x"))
	check("a", "0 1 1.5 2 3 4")
	check("b", "x y")
	// Existing chains: after committed rules, after rules of the batch, at the head.
	commit(t, c,
		add("a", "2.1", "2"), add("a", "2.2", "2.1"), add("a", "2.3", "2.2"), add("a", "2.15", "2.1"),
		add("a", "-1", ""), add("a", "-0.5", "-1"), add("a", "5", "4"),
		AddChain{Table: id, Chain: base}, add("b", "w", ""), add("b", "x.1", "x"))
	check("a", "-1 -0.5 0 1 1.5 2 2.1 2.15 2.2 2.3 3 4 5")
	check("b", "w x x.1 y")
	// The handles are the kernel's.
	dump := nfttest.Must(c.Dump())
	for _, ch := range dump[0].Chains {
		for _, r := range ch.Rules {
			if want := handles[r.Info.Comment]; want == nil || *want != *r.Handle {
				t.Errorf("rule %s has handle %d, want %v", r.Info.Comment, r.Handle.N, want)
			}
		}
	}
	// A rule can be replaced at its position, and a rule of the batch can be deleted.
	commit(t, c, add("a", "two", "2"), DeleteRule{Table: id, Chain: "a", Handle: handles["2"]},
		add("a", "gone", "two"), DeleteRule{Table: id, Chain: "a", Handle: handles["gone"]},
		AddChain{Table: id, Chain: chain("n")}, add("n", "n1", ""), add("n", "n2", "n1"),
		DeleteRule{Table: id, Chain: "n", Handle: handles["n2"]}, add("n", "n3", "n1"))
	check("a", "-1 -0.5 0 1 1.5 two 2.1 2.15 2.2 2.3 3 4 5")
	check("n", "n1 n3")
	if handles["gone"].N != 0 {
		t.Errorf("the handle of a rule that is gone is %d", handles["gone"].N)
	}
	// Delete a chain and create it again in one batch.
	commit(t, c, DeleteChain{Table: id, Name: "a"}, AddChain{Table: id, Chain: chain("a")}, add("a", "again", ""))
	check("a", "again")
	commit(t, c, DeleteTable{Table: id}, AddTable{Table: id}, AddChain{Table: id, Chain: base}, add("b", "1", ""), add("b", "2", "1"))
	check("b", "1 2")
	// Rules without a handle go to the head.
	commit(t, c, AddChain{Table: id, Chain: chain("m")}, AddRule{Table: id, Chain: "m", Rule: ruleOf("counter", "1")},
		AddRule{Table: id, Chain: "m", Rule: ruleOf("counter", "2")})
	check("m", "2 1")
}

func TestManyRulesInOneBatch(t *testing.T) {
	_, c := connect(t, Config{})
	id := testTable()
	const n = 5000
	ops := []Op{AddTable{Table: id}, AddChain{Table: id, Chain: chain("a")}}
	handles := make([]Handle, n)
	var after *Handle
	for i := range handles {
		ops = append(ops, AddRule{Table: id, Chain: "a", Rule: ruleOf("counter", fmt.Sprint(i)), After: after, Handle: &handles[i]})
		after = &handles[i]
	}
	commit(t, c, ops...)
	if !slices.IsSortedFunc(handles, func(a, b Handle) int { return int(a.N) - int(b.N) }) || handles[0].N == 0 {
		t.Error("handles are not in the order of the rules")
	}
	dump := nfttest.Must(c.Dump())
	for i, r := range dump[0].Chains[0].Rules {
		if r.Info.Comment != fmt.Sprint(i) || *r.Handle != handles[i] {
			t.Fatalf("rule %d = %+v handle %d", i, r.Info, r.Handle.N)
		}
	}
	// findHandles finds the handles of rules with lost echoes.
	var lost []AddRule
	want := slices.Clone(handles)
	for i := n / 2; i < n; i += 7 {
		handles[i].N = 0
		lost = append(lost, ops[i+2].(AddRule))
	}
	nfttest.NoError(t, c.findHandles(lost))
	if !slices.Equal(handles, want) {
		t.Error("findHandles found other handles")
	}
}

func TestRuleThatIsTooLongToEcho(t *testing.T) {
	ns, c := connect(t, Config{})
	id := testTable()
	handle, next := &Handle{}, &Handle{}
	long := strings.Repeat(`log prefix "`+strings.Repeat("x", 100)+`" `, 120)
	commit(t, c, AddTable{Table: id}, AddChain{Table: id, Chain: chain("a")},
		AddRule{Table: id, Chain: "a", Rule: ruleOf(long, "long"), Handle: handle, Owner: "me"},
		AddRule{Table: id, Chain: "a", Rule: ruleOf("accept", "next"), After: handle, Handle: next, Owner: "me"})
	if handle.N == 0 || next.N <= handle.N {
		t.Errorf("handles %d and %d", handle.N, next.N)
	}
	commit(t, c, DeleteRule{Table: id, Chain: "a", Handle: handle})
	if got := comments(t, ns, "a"); got != "next" {
		t.Errorf("chain = %s, want next", got)
	}
}

// TestLargeAnonymousSet has a set that does not fit into one message.
func TestLargeAnonymousSet(t *testing.T) {
	ns, c := connect(t, Config{})
	var many []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf("10.0.%d.%d", i>>8, i&255))
	}
	commit(t, c, AddTable{Table: testTable()}, AddChain{Table: testTable(), Chain: chain("a")},
		AddRule{Table: testTable(), Chain: "a", Rule: ruleOf("ip saddr { "+strings.Join(many, ", ")+" } drop", ""), Handle: &Handle{}})
	contains(t, ns.ListRuleset(t), "10.0.0.0", "10.0.19.135")
}
