package desired_test

import (
	"slices"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// repair commits a Diff and checks that nothing is left to do.
func (h *harness) repair() *desired.Plan {
	h.t.Helper()
	p := planner.Diff(h.State, h.k.dump())
	for i, o := range p.Origin {
		if o != -1 {
			h.t.Errorf("op %d %s of a diff has origin %d", i, opText(p.Ops[i]), o)
		}
	}
	if err := h.k.commit(p.Ops); err != nil {
		h.t.Fatalf("commit diff: %v\n%s", err, planText(p))
	}
	planner.Accept(h.State)
	if again := planner.Diff(h.State, h.k.dump()); !noOps(again) {
		h.t.Errorf("second diff:\n%s", planText(again))
	}
	planner.Accept(h.State)
	return p
}

func diffHarness(t *testing.T) (*harness, string) {
	h := newHarness(t)
	h.commit(repaired)
	return h, h.k.text()
}

var repaired = snapshot(services, 0, in(ipWeft,
	addrSet("s", member("10.0.0.1"), member("10.0.0.2")),
	addrMap("m", mapped("10.0.0.1", "10.1.0.1")),
	base("input", 0, rule("a"), rule("saddr @s", "@s"), rule("c")),
	regular("r", rule("x"))))

func TestDiffRepairs(t *testing.T) {
	tests := []struct {
		name   string
		damage func(*fakeTable)
		counts desired.Counts
	}{
		{"nothing", func(*fakeTable) {}, desired.Counts{}},
		{"element gone", func(t *fakeTable) { delete(t.sets["s"].elements, addr("10.0.0.1")) }, desired.Counts{ElementsAdded: 1}},
		{"element foreign", func(t *fakeTable) { t.sets["s"].elements[addr("10.0.0.9")] = member("10.0.0.9") }, desired.Counts{ElementsDeleted: 1}},
		{"value changed", func(t *fakeTable) { t.sets["m"].elements[addr("10.0.0.1")] = mapped("10.0.0.1", "10.9.9.9") }, desired.Counts{ElementsAdded: 1, ElementsDeleted: 1}},
		{"rule gone", func(t *fakeTable) { c := t.chains["input"]; c.rules = slices.Delete(c.rules, 1, 2) }, desired.Counts{RulesAdded: 1}},
		{"rules flushed", func(t *fakeTable) { t.chains["input"].rules = nil }, desired.Counts{RulesAdded: 3}},
		{"rules in another order", func(t *fakeTable) { slices.Reverse(t.chains["input"].rules) }, desired.Counts{RulesAdded: 2, RulesDeleted: 2}},
		{"rule foreign", func(t *fakeTable) {
			c := t.chains["r"]
			c.rules = append(c.rules, fakeRule{handle: &kernel.Handle{}, n: 99, rule: rule("foreign")})
		}, desired.Counts{RulesDeleted: 1}},
		{"chain gone", func(t *fakeTable) { delete(t.chains, "r") }, desired.Counts{Chains: 1, RulesAdded: 1}},
		{"chain foreign", func(t *fakeTable) { t.chains["z"] = &fakeChain{decl: regular("z").Decl} }, desired.Counts{Chains: 1}},
		{"policy changed", func(t *fakeTable) { t.chains["input"].decl = withPolicy(base("input", 0), true).Decl }, desired.Counts{Chains: 1}},
		{"set foreign", func(t *fakeTable) {
			t.sets["z"] = &fakeSet{decl: addrSet("z").Decl, elements: map[string]nftset.Element{}}
		}, desired.Counts{Sets: 1}},
		{"set with other flags", func(t *fakeTable) {
			t.sets["s"].decl = withFlags(addrSet("s"), nftset.FlagTimeout).Decl
		}, desired.Counts{Sets: 2, ElementsAdded: 2, RulesAdded: 1, RulesDeleted: 1}},
		{"all flushed", func(t *fakeTable) { clear(t.chains); clear(t.sets) }, desired.Counts{Sets: 2, Chains: 2, RulesAdded: 4, ElementsAdded: 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, want := diffHarness(t)
			tt.damage(h.k.tables[ipWeft])
			if p := h.repair(); p.Counts != tt.counts {
				t.Errorf("counts %+v, want %+v:\n%s", p.Counts, tt.counts, planText(p))
			}
			if got := h.k.text(); got != want {
				t.Errorf("kernel has:\n%s\nwant:\n%s", got, want)
			}
			// And the state knows the new handles.
			h.commit(snapshot(services, 0, in(ipWeft, base("input", 0))))
		})
	}
}

func TestDiffAdoptedRules(t *testing.T) {
	h, _ := diffHarness(t)
	h.restart(views.Record(h.State))
	empty(t, "after a restart", planner.Diff(h.State, h.k.dump()))
	planner.Accept(h.State)
	c := h.k.tables[ipWeft].chains["input"]
	c.rules = slices.Delete(c.rules, 1, 2)
	empty(t, "when a rule is gone that cannot be added", planner.Diff(h.State, h.k.dump()))
	planner.Accept(h.State)
	if p := h.commit(repaired); p.Counts != (desired.Counts{RulesAdded: 1}) {
		t.Errorf("counts %+v, want the missing rule", p.Counts)
	}
}
