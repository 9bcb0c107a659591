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
	nftset "github.com/weft-proxy/weft/nft/set"
)

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
	if err := h.k.commit(ops); err != nil {
		h.t.Fatalf("stage: %v", err)
	}
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
	if p := h.commit(snapshot(policy, 0)); planText(p) != "delete rule input\ndelete set a\ndelete set b\ndelete chain input\n" {
		t.Errorf("plan of the withdrawal:\n%s", planText(p))
	}
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
		if err := h.k.commit(planner.Unstage(h.State, sets)); err != nil {
			t.Fatal(err)
		}
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
			if err := h.k.commit(planner.Unstage(h.State, sets)); err != nil {
				t.Fatal(err)
			}
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
			if err := h.k.commit(planner.Diff(h.State, h.k.dump()).Ops); err != nil {
				t.Fatal(err)
			}
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
		if err := h.DropUnclaimedSet(at); err != nil {
			t.Fatal(err)
		}
		h.commit()
	}
	if h.k.text() != want {
		t.Errorf("kernel has\n%swant\n%s", h.k.text(), want)
	}
}
