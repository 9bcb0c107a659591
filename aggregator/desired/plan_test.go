package desired_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
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
	wantPlan(t, "plan", p, want)
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
	wantPlan(t, "plan", p, want)
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
			same(t, "what comes ahead", planText(&desired.Plan{Ops: p.Ops[:p.Ahead], Origin: p.Origin}), test.ahead)
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
	wantPlan(t, "plan", p, want)
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
	wantPlan(t, "plan", p, want)
}

func TestPlanPolicyIsAnUpdate(t *testing.T) {
	h := newHarness(t)
	c := base("input", 0, rule("a"))
	h.commit(snapshot(policy, 0, in(ipWeft, c)))
	wantPlan(t, "plan of a policy", h.commit(snapshot(policy, 0, in(ipWeft, withPolicy(c, true)))), "add chain input\n")
	wantPlan(t, "plan of a priority", h.commit(snapshot(policy, 0, in(ipWeft, base("input", 7, rule("a"))))), "delete rule input\ndelete chain input\nadd chain input\nadd rule input a\n")
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
	wantPlan(t, "plan", p, want)
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

// members returns n addresses.
func members(n int) []nftset.Element {
	var all []nftset.Element
	for i := range n {
		all = append(all, member(fmt.Sprintf("10.0.%d.%d", i>>8, i&255)))
	}
	return all
}

// large is an update with sets to stage and a rule that refers to one of them.
func large() *desired.Update {
	return snapshot(policy, 0, in(ipWeft, addrSet("a", members(5)...), addrSet("b", members(4)...), base("input", 0, rule("saddr @a", "@a"))))
}

// stage applies u and stages it.
func (h *harness) stage(u *desired.Update) []*merge.Staged {
	h.t.Helper()
	h.apply(u)
	return planner.Stage(h.State, u, 1, time.Hour)
}

// step brings n elements to the kernel and reports whether there were any.
func (h *harness) step(sets []*merge.Staged, n int) bool {
	h.t.Helper()
	ops := planner.StageOps(h.State, sets, n, time.Hour)
	must(h.t, h.k.commit(ops))
	planner.StageSent(h.State, ops)
	return len(ops) > 0
}

// TestStage commits others' updates between the steps of an update. The plan of the
// update has only what refers to the staged sets, and counts everything.
func TestStage(t *testing.T) {
	h, other := newHarness(t), newHarness(t)
	u := large()
	want := other.commit(large()).Counts
	other.commit(snapshot(extra, 0, in(ipWeft, addrSet("z", members(2)...))))
	sets := h.stage(u)
	if len(sets) != 2 || len(h.Tables) != 0 {
		t.Fatalf("%d sets are staged, and there are %d tables", len(sets), len(h.Tables))
	}
	h.step(sets, 2)
	h.commit(snapshot(extra, 0, in(ipWeft, addrSet("z", members(2)...))))
	want.Tables-- // the other one added it
	for steps := 0; h.step(sets, 2); steps++ {
		if steps > 9 {
			t.Fatal("the staging does not end")
		}
	}
	if p := planner.Diff(h.State, h.k.dump()); !noOps(p) {
		t.Errorf("diff while sets are staged:\n%s", planText(p))
	}
	planner.Accept(h.State)
	p := h.commit(u)
	if got := "add chain input\nadd rule input saddr @a\n"; planText(p) != got || p.Counts != want {
		t.Errorf("plan with counts %+v, want %+v:\n%s", p.Counts, want, planText(p))
	}
	if h.k.text() != other.k.text() || len(h.Staged) != 0 {
		t.Errorf("%d sets are still staged, and the kernel has\n%swant\n%s", len(h.Staged), h.k.text(), other.k.text())
	}
	wantPlan(t, "plan of the withdrawal", h.commit(snapshot(policy, 0)), "delete rule input\ndelete set a\ndelete set b\ndelete chain input\n")
}

// TestUnstage gives a staging up: the kernel is as before.
func TestUnstage(t *testing.T) {
	for _, before := range []bool{false, true} {
		h := newHarness(t)
		if before {
			h.commit(snapshot(extra, 0, in(ipWeft, addrSet("z", members(2)...))))
		}
		want := h.k.text()
		sets := h.stage(large())
		h.step(sets, 7+planner.StagedSetCost)
		must(t, h.k.commit(planner.Unstage(h.State, sets)))
		if got := h.k.text(); got != want || len(planner.StageOps(h.State, sets, 1, time.Hour)) > 0 {
			t.Errorf("kernel has\n%swant\n%s", got, want)
		}
	}
}

// TestStagedNameOfAnother has another fragment declare a set, with other content, or the
// table, with another comment or dormant, while the set is staged.
func TestStagedNameOfAnother(t *testing.T) {
	commented, dormant := in(ipWeft, addrSet("z")), in(ipWeft, addrSet("z"))
	commented.Comment, dormant.Dormant = "another", true
	for name, tu := range map[string]desired.TableUpdate{
		"set": in(ipWeft, addrSet("a", member("192.0.2.1"))), "other types": in(ipWeft, addrMap("b", mapped("10.0.0.1", "10.0.0.2"))),
		"comment": commented, "dormant": dormant,
	} {
		t.Run(name, func(t *testing.T) {
			h, other := newHarness(t), newHarness(t)
			u := large()
			sets := h.stage(u)
			h.step(sets, 3)
			h.commit(snapshot(extra, 0, tu))
			other.commit(snapshot(extra, 0, tu))
			for h.step(sets, 3) {
			}
			err, want := h.Apply(u), other.Apply(u)
			if (err == nil) != (want == nil) {
				t.Fatalf("error %v, want %v", err, want)
			}
			h.commit()
			other.commit()
			must(t, h.k.commit(planner.Unstage(h.State, sets)))
			if h.k.text() != other.k.text() {
				t.Errorf("kernel has\n%swant\n%s", h.k.text(), other.k.text())
			}
		})
	}
}

// TestStagedSetIsDamaged changes a staged set from outside. A repair removes it, and the
// plan of the update adds it anew.
func TestStagedSetIsDamaged(t *testing.T) {
	for name, damage := range map[string]func(*fakeTable){
		"removed": func(t *fakeTable) { delete(t.sets, "a") },
		"less":    func(t *fakeTable) { delete(t.sets["a"].elements, addr("10.0.0.0")) },
		"replaced": func(t *fakeTable) {
			delete(t.sets["a"].elements, addr("10.0.0.0"))
			t.sets["a"].elements[addr("192.0.2.1")] = member("192.0.2.1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, other := newHarness(t), newHarness(t)
			u := large()
			other.commit(u)
			sets := h.stage(u)
			for h.step(sets, 3) {
			}
			damage(h.k.tables[ipWeft])
			must(t, h.k.commit(planner.Diff(h.State, h.k.dump()).Ops))
			planner.Accept(h.State)
			h.commit(u)
			if h.k.text() != other.k.text() {
				t.Errorf("kernel has\n%swant\n%s", h.k.text(), other.k.text())
			}
		})
	}
}

// TestNotStaged has sets that cannot be staged.
func TestNotStaged(t *testing.T) {
	short := member("10.0.0.1")
	short.Timeout = time.Second
	for name, u := range map[string]*desired.Update{
		"known":      snapshot(policy, 0, in(ipWeft, addrSet("known", members(9)...))),
		"to a chain": snapshot(policy, 0, in(ipWeft, verdictMap("v", leads(dest("10.0.0.1", 6, 80), "pick")), regular("pick"))),
		"timeout":    snapshot(policy, 0, in(ipWeft, withFlags(addrSet("t", short), nftset.FlagTimeout))),
		"dynamic":    snapshot(policy, 0, in(ipWeft, withFlags(addrSet("d", members(3)...), nftset.FlagEval))),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.commit(snapshot(extra, 0, in(ipWeft, addrSet("known"))))
			if sets := h.stage(u); len(sets) > 0 {
				t.Errorf("set %s is staged", sets[0].ID.Name)
			}
		})
	}
	h := newHarness(t)
	u := large()
	h.apply(u)
	if sets := planner.Stage(h.State, u, time.Minute, time.Hour); sets != nil || len(h.Staged) > 0 {
		t.Errorf("%d small sets are staged", len(sets))
	}
}

// TestDropUnclaimedSet finds sets without a fragment after a restart.
func TestDropUnclaimedSet(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(policy, 0, in(ipWeft, addrSet("mine", members(2)...), base("input", 0, rule("saddr @mine", "@mine")))))
	record, want := views.Record(h.State), h.k.text()
	sets := h.stage(snapshot(extra, 0, in(ipWeft, addrSet("left", members(3)...)), in(ipDeny, addrSet("left", members(3)...))))
	h.step(sets, 100)
	adopt.Dump(h.State, h.k.dump(), record)
	left := h.UnclaimedSets()
	if len(left) != 2 || left[0].Name != "left" || left[1].Name != "left" {
		t.Fatalf("unclaimed sets %v", left)
	}
	for _, at := range left {
		must(t, h.DropUnclaimedSet(at))
		h.commit()
	}
	if h.k.text() != want {
		t.Errorf("kernel has\n%swant\n%s", h.k.text(), want)
	}
}
