package desired_test

import (
	"fmt"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func TestPlanOrder(t *testing.T) {
	h := newHarness(t)
	full := in(ipWeft,
		verdictMap("v", leads(dest("10.0.0.1", 6, 80), "pick")),
		addrSet("s", member("10.0.0.1")),
		base("input", 0, rule("vmap @v", "@v"), rule("saddr @s", "@s"), rule("jump other", "other")),
		regular("pick"), regular("other", rule("accept")))
	p := h.commit(snapshot(policy, 0, full))
	want := `add table weft
add set s
add set v
add chain input
add chain other
add chain pick
add elements s 1
add elements v 1
add rule input vmap @v
add rule input saddr @s
add rule input jump other
add rule other accept
`
	if got := planText(p); got != want {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
	if want := (desired.Counts{Tables: 1, Chains: 3, Sets: 2, RulesAdded: 4, ElementsAdded: 2}); p.Counts != want {
		t.Errorf("counts %+v, want %+v", p.Counts, want)
	}
	p = h.commit(snapshot(policy, 0, in(ipWeft, base("input", 0))))
	want = `delete rule input
delete rule input
delete rule input
delete rule other
delete set s
flush set v
delete set v
delete chain other
delete chain pick
`
	if got := planText(p); got != want {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
}

// TestPlanAhead commits new chains before elements of maps in force that lead to them, with
// all that they need, and nothing else.
func TestPlanAhead(t *testing.T) {
	key := dest("10.0.0.1", 6, 80)
	table := func(parts ...any) desired.TableUpdate {
		return in(ipWeft, append(parts, base("input", 0, rule("vmap @v", "@v")), regular("old"))...)
	}
	needs := []any{addrSet("s", member("10.0.0.1")), regular("new", rule("saddr @s", "@s"), rule("jump other", "other")), regular("other", rule("drop"))}
	for name, test := range map[string]struct {
		before, after desired.TableUpdate
		ahead         string
	}{
		"an element that moves": {table(verdictMap("v", leads(key, "old"))), table(append(needs, verdictMap("v", leads(key, "new")))...),
			"add set s\nadd chain new\nadd chain other\nadd elements s 1\nadd rule new saddr @s\nadd rule new jump other\nadd rule other drop\n"},
		"a new element":              {table(verdictMap("v")), table(append(needs, verdictMap("v", leads(key, "new")))...), "add set s\nadd chain new\nadd chain other\nadd elements s 1\nadd rule new saddr @s\nadd rule new jump other\nadd rule other drop\n"},
		"a chain that is there":      {table(verdictMap("v")), table(addrSet("s", member("10.0.0.1")), verdictMap("v", leads(key, "old"))), ""},
		"a chain without an element": {table(verdictMap("v")), table(append(needs, verdictMap("v"))...), ""},
		"a new map":                  {in(ipWeft, regular("old")), table(append(needs, verdictMap("v", leads(key, "new")))...), ""},
		"a map of another type":      {table(addrMap("v", mapped("10.0.0.1", "10.0.0.2"))), table(append(needs, verdictMap("v", leads(key, "new")))...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.commit(snapshot(policy, 0, test.before))
			p := h.commit(snapshot(policy, 0, test.after))
			if got := planText(&desired.Plan{Ops: p.Ops[:p.Ahead], Origin: p.Origin}); got != test.ahead {
				t.Errorf("ahead come:\n%s\nwant:\n%s", got, test.ahead)
			}
		})
	}
}

func TestPlanOrigins(t *testing.T) {
	h := newHarness(t)
	h.apply(
		snapshot(services, 0, in(ipWeft, addrSet("s", member("10.0.0.1")), base("input", 0, rule("one")))),
		snapshot(policy, 0, in(ipWeft, addrSet("s", member("10.0.0.2")), base("input", 0, rule("two")))),
		patch(services, in(ipWeft, desired.Elements{Set: "s", Add: []nftset.Element{member("10.0.0.3")}})),
	)
	if err := h.Apply(patch(policy, in(ipWeft, regular("c", rule("jump nowhere", "nowhere"))))); err == nil {
		t.Error("a dangling reference was accepted")
	}
	h.apply(patch(policy, in(ipWeft, regular("d"))))
	if h.State.Origin != 4 {
		t.Errorf("%d pending, want 4: a rejected update does not count", h.State.Origin)
	}
	p := h.commit()
	want := `add table weft <- 1
add set s <- 1
add chain d <- 3
add chain input <- 1
add elements s 1
add elements s 1 <- 1
add elements s 1 <- 2
add rule input two <- 1
add rule input one
`
	if got := planText(p); got != want {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
	h.apply(
		patch(services, in(ipWeft, desired.Elements{Set: "s", Remove: []nftset.Element{member("10.0.0.1")}})),
		patch(policy, in(ipWeft, base("input", 0, rule("three")), desired.Elements{Set: "s", Remove: []nftset.Element{member("10.0.0.2")}})),
		patch(services, in(ipWeft, base("input", 0))),
	)
	p = h.commit()
	want = `delete rule input <- 1
delete rule input <- 2
delete elements s 1
delete elements s 1 <- 1
add rule input three <- 1
`
	if got := planText(p); got != want {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
}

func TestPlanPolicyIsAnUpdate(t *testing.T) {
	h := newHarness(t)
	c := base("input", 0, rule("a"))
	h.commit(snapshot(policy, 0, in(ipWeft, c)))
	if p := h.commit(snapshot(policy, 0, in(ipWeft, withPolicy(c, true)))); planText(p) != "add chain input\n" {
		t.Errorf("plan of a policy:\n%s", planText(p))
	}
	p := h.commit(snapshot(policy, 0, in(ipWeft, base("input", 7, rule("a")))))
	if want := "delete rule input\ndelete chain input\nadd chain input\nadd rule input a\n"; planText(p) != want {
		t.Errorf("plan of a priority:\n%s\nwant:\n%s", planText(p), want)
	}
}

func TestPlanChainAnew(t *testing.T) {
	h := newHarness(t)
	one, two := dest("10.0.0.1", 6, 80), dest("10.0.0.2", 6, 80)
	pick := func(comment string) desired.Chain {
		return desired.Chain{Decl: &nftobject.Chain{Name: "pick", Comment: comment}, Rules: []*compile.Rule{rule("a")}}
	}
	h.commit(
		snapshot(services, 0, in(ipWeft, pick(""), regular("other"))),
		snapshot(policy, 0, in(ipWeft, verdictMap("v", leads(one, "pick"), leads(two, "other")), base("input", 0, rule("jump pick", "pick"), rule("jump other", "other")))),
	)
	h.apply(snapshot(extra, 0, in(ipWeft, regular("late"))), snapshot(services, 0, in(ipWeft, pick("changed"), regular("other"))))
	p := h.commit()
	want := `delete rule pick <- 1
delete rule input <- 1
delete elements v 1 <- 1
delete chain pick <- 1
add chain late
add chain pick <- 1
add elements v 1 <- 1
add rule pick a <- 1
add rule input jump pick <- 1
`
	if got := planText(p); got != want {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
	h.commit(snapshot(policy, 0))
}

func TestPlanIsRepeatable(t *testing.T) {
	h := newHarness(t)
	h.apply(cluster(50, 3), snapshot(policy, 0, in(ipWeft, addrSet("a"), addrSet("b"), addrSet("c"))))
	first := planText(planner.Make(h.State))
	for range 5 {
		other := newHarness(t)
		other.apply(cluster(50, 3), snapshot(policy, 0, in(ipWeft, addrSet("a"), addrSet("b"), addrSet("c"))))
		a, b := planner.Make(h.State), other.commit()
		if planText(a) != first || planText(b) != first {
			t.Fatalf("plans differ:\n%s\n%s", first, planText(b))
		}
		if x, y := fmt.Sprint(elementsOf(a)), fmt.Sprint(elementsOf(b)); x != y {
			t.Fatal("elements are in another order")
		}
	}
	h.commit()
}

func elementsOf(p *desired.Plan) []nftset.Element {
	var all []nftset.Element
	for _, op := range p.Ops {
		switch op := op.(type) {
		case kernel.AddElements:
			all = append(all, op.Elements...)
		case kernel.DeleteElements:
			all = append(all, op.Elements...)
		}
	}
	return all
}

func TestTableComment(t *testing.T) {
	h := newHarness(t)
	one, two := in(ipWeft, addrSet("s")), in(ipWeft, addrSet("s"))
	one.Comment, two.Comment = "one", "two"
	h.apply(snapshot(extra, 5, one), snapshot(policy, 7, two))
	p := planner.Make(h.State)
	if op, ok := p.Ops[0].(kernel.AddTable); !ok || op.Comment != "one" {
		t.Errorf("first op %+v, want the table with the first fragment's comment", p.Ops[0])
	}
	h.commit()
}
