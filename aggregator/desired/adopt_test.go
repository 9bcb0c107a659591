package desired_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/adopt"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// restart gives the harness a new State that has adopted the kernel, with
// the record as it comes back from a file.
func (h *harness) restart(record desired.Record) {
	h.t.Helper()
	b, err := json.Marshal(record)
	must(h.t, err)
	var again desired.Record
	must(h.t, json.Unmarshal(b, &again))
	if !reflect.DeepEqual(record, again) {
		h.t.Errorf("record changed on its way through JSON:\n%+v\n%+v", record, again)
	}
	h.State = merge.New()
	h.Expiries.Advance(h.k.now)
	adopt.Dump(h.State, h.k.dump(), again)
	checkInvariants(h.t, h.State)
	if p := planner.Make(h.State); !noOps(p) {
		h.t.Errorf("plan after Adopt:\n%s", planText(p))
	}
}

func empty(t *testing.T, when string, p *desired.Plan) {
	t.Helper()
	if !noOps(p) || len(p.Stale) > 0 {
		t.Errorf("plan %s:\n%s%v", when, planText(p), p.Stale)
	}
}

func TestAdoptCommitsOnlyWhatDiffers(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, addrSet("s", member("10.0.0.1"), member("10.0.0.2")), base("input", 0, rule("a"), rule("b"), rule("c")))))
	h.restart(views.Record(h.State))
	wantPlan(t, "plan", h.commit(snapshot(services, 0, in(ipWeft, addrSet("s", member("10.0.0.2"), member("10.0.0.3")), base("input", 0, rule("a"), rule("c"))))), "delete rule input\ndelete elements s 1\nadd elements s 1\n")
}

func TestAdoptWithdrawsNothingBeforeAllAreBack(t *testing.T) {
	h := newHarness(t)
	one := snapshot(services, 0, in(ipWeft, addrSet("s", member("10.0.0.1"), member("10.0.0.2"))))
	two := snapshot(policy, 0, in(ipWeft, addrSet("s", member("10.0.0.2"), member("10.0.0.3"))))
	h.commit(one, two)
	h.restart(views.Record(h.State))
	if u := unclaimedOf(h.State); len(u) != 0 {
		t.Errorf("unclaimed %v, but both are recorded", u)
	}
	less := snapshot(services, 0, in(ipWeft, addrSet("s", member("10.0.0.2"))))
	empty(t, "when one of two is back with less", h.commit(less))
	wantPlan(t, "plan when both are back", h.commit(two), "delete elements s 1\n")
	if len(h.Unclaimed.Tables) != 0 {
		t.Errorf("there is still unclaimed content in %v", h.Unclaimed.Tables)
	}
}

// The kernel's value of a key that two fragments state stays its winner's,
// in whichever order the publishers return, however often.
func TestAdoptKeepsTheWinner(t *testing.T) {
	h := newHarness(t)
	wins := snapshot(policy, -1, in(ipWeft, addrSet("s", withComment(member("10.0.0.1"), "first"))))
	loses := snapshot(services, 1, in(ipWeft, addrSet("s", withComment(member("10.0.0.1"), "second"), member("10.0.0.2"))))
	h.commit(wins, loses)
	for range 2 {
		h.restart(views.Record(h.State))
		empty(t, "when the loser is back", h.commit(loses))
	}
	empty(t, "when the winner is back", h.commit(wins))
	h.restart(views.Record(h.State))
	empty(t, "when the winner is back first", h.commit(wins))
	h.restart(views.Record(h.State))
	empty(t, "when the loser is back after the winner and another restart", h.commit(loses))
	wantPlan(t, "plan when the winner is withdrawn", h.commit(snapshot(policy, 0)), "delete elements s 1\nadd elements s 1\n")
}

func withComment(e nftset.Element, comment string) nftset.Element {
	e.Comment = comment
	return e
}

func TestAdoptPatchNeedsSnapshot(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, addrSet("s"))))
	h.restart(views.Record(h.State))
	h.reject(patch(services, in(ipWeft, regular("c"))), desired.ReasonSnapshotNeeded, "")
}

func TestAdoptedReferencesHold(t *testing.T) {
	h := newHarness(t)
	h.commit(
		snapshot(services, 0, in(ipWeft, addrSet("s"), regular("c"))),
		snapshot(policy, 0, in(ipWeft, base("input", 0, rule("saddr @s", "@s"), rule("jump c", "c")))),
	)
	h.restart(views.Record(h.State))
	h.reject(snapshot(services, 0, in(ipWeft, addrSet("s"))), desired.ReasonReference, "table ip weft chain c", "chain input of fragment policy/web", "not yet published again")
	h.reject(snapshot(services, 0, in(ipWeft, withFlags(addrSet("s"), nftset.FlagTimeout), regular("c"))), desired.ReasonConflict, "table ip weft set s", "policy/web")
	h.reject(snapshot(extra, 0, in(ipWeft, addrMap("s"))), desired.ReasonConflict, "table ip weft set s", "services/all")
}

func TestAdoptWithoutRecord(t *testing.T) {
	h := newHarness(t)
	table := in(ipWeft, addrSet("s", member("10.0.0.1"), member("10.0.0.2")), addrSet("old", member("10.0.0.9")), base("input", 0, rule("a", "@s")), regular("bare"))
	h.commit(snapshot(services, 3, table))
	h.restart(desired.Record{})
	want := []Unclaimed{
		{Table: ipWeft, Object: "chain bare"},
		{Table: ipWeft, Object: "set old", Elements: 1},
		{Table: ipWeft, Object: "set s", Elements: 2},
	}
	if got := unclaimedOf(h.State); !slices.Equal(got, want) {
		t.Errorf("unclaimed %v, want %v", got, want)
	}
	table.PutSets = table.PutSets[:1]
	empty(t, "when the publisher is back", h.commit(snapshot(services, 3, table)))
	// What it has claimed is its own to withdraw.
	wantPlan(t, "plan of a removal", h.commit(patch(services, in(ipWeft, desired.Elements{Set: "s", Remove: []nftset.Element{member("10.0.0.2")}}))), "delete elements s 1\n")
	must(t, h.DropUnclaimed(allTables))
	wantPlan(t, "plan of dropping the unclaimed", h.commit(), "delete set old\n")
	if u := unclaimedOf(h.State); len(u) != 0 {
		t.Errorf("unclaimed after dropping: %v", u)
	}
}

func TestUnclaimedYields(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, addrMap("m", mapped("10.0.0.1", "10.1.0.1"), mapped("10.0.0.2", "10.1.0.2")), base("input", 0))))
	h.restart(desired.Record{})
	// Another value wins, and another declaration makes the set anew.
	wantPlan(t, "plan of another value", h.commit(snapshot(policy, 0, in(ipWeft, addrMap("m", mapped("10.0.0.1", "10.1.0.9"))))), "delete elements m 1\nadd elements m 1\n")
	if st, _ := views.Fragment(h.State, policy); st.Shadowed != 0 {
		t.Errorf("status %+v", st)
	}
	wantPlan(t, "plan of other declarations", h.commit(snapshot(policy, 0, in(ipWeft, addrSet("m", member("10.0.0.5")), base("input", 5)))), "delete set m\ndelete chain input\nadd set m\nadd chain input\nadd elements m 1\n")
}

func TestUnclaimedRulesOfForeignHands(t *testing.T) {
	h := newHarness(t)
	mine := snapshot(services, 0, in(ipWeft, base("input", 0, rule("a"), rule("b"))))
	h.commit(mine)
	c := h.k.tables[ipWeft].chains["input"]
	c.rules = slices.Insert(c.rules, 1, fakeRule{handle: &kernel.Handle{}, n: 99, rule: rule("foreign")})
	h.restart(views.Record(h.State))
	if want := []Unclaimed{{Table: ipWeft, Object: "chain input", Rules: 1}}; !slices.Equal(unclaimedOf(h.State), want) {
		t.Errorf("unclaimed %v, want %v", unclaimedOf(h.State), want)
	}
	h.commit(mine)
	must(t, h.DropUnclaimed(allTables))
	wantPlan(t, "plan of dropping", h.commit(), "delete rule input\n")
}

func TestDropUnclaimedInUse(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, addrSet("s"))))
	h.restart(desired.Record{})
	h.commit(snapshot(policy, 0, in(ipWeft, regular("c", rule("saddr @s", "@s")))))
	if err := h.DropUnclaimed(allTables); err == nil {
		t.Error("an unclaimed set was dropped while a rule uses it")
	}
	h.commit(snapshot(policy, 0))
	must(t, h.DropUnclaimed(allTables))
	wantPlan(t, "plan", h.commit(), "delete table weft\n")
}

func TestAdoptDynamicSet(t *testing.T) {
	h := newHarness(t)
	aff := withFlags(addrMap("affinity"), nftset.FlagEval|nftset.FlagTimeout)
	fragment := func(elems ...nftset.Element) *desired.Update {
		s := aff
		s.Elements = elems
		return snapshot(services, 0, in(ipWeft, s))
	}
	mine := mapped("10.0.0.1", "10.1.0.1")
	h.commit(fragment(mine))
	byPacket := func(e nftset.Element) {
		e.Timeout = 3 * time.Hour
		h.k.tables[ipWeft].sets["affinity"].elements[e.Key] = e
	}
	byPacket(mapped("10.0.0.2", "10.1.0.2"))
	h.restart(views.Record(h.State))
	empty(t, "when the publisher is back", h.commit(fragment(mine)))
	empty(t, "of a diff", planner.Diff(h.State, h.k.dump()))
	planner.Accept(h.State)
	wantPlan(t, "plan of its own element", h.commit(fragment()), "delete elements affinity 1\n")
	same(t, "elements, with that of the packet", len(h.k.tables[ipWeft].sets["affinity"].elements), 1)
	h.restart(desired.Record{})
	must(t, h.DropUnclaimed(allTables))
	wantPlan(t, "plan of dropping all", h.commit(), "delete table weft\n")
}

func TestAdoptOddRecords(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, addrSet("s", member("10.0.0.1")), regular("c", rule("x")))))
	dump := h.k.dump()
	tr := desired.TableRecord{Family: "ip", Name: "weft", Sets: []desired.SetRecord{{Name: "s", Conntrack: true}, {Name: "s"}, {Name: "gone"}}, Chains: []desired.ChainRecord{{Name: "c", Sets: []string{"gone"}, Chains: []string{"gone", "c"}}}}
	records := []desired.Record{
		{},
		{Fragments: []desired.FragmentRecord{{Publisher: "services", Name: "all", Tables: []desired.TableRecord{tr}}}},
		{Fragments: []desired.FragmentRecord{{Publisher: "services", Name: "all"}, {Publisher: "services", Name: "all", Tables: []desired.TableRecord{tr}}}},
		{Fragments: []desired.FragmentRecord{{Tables: []desired.TableRecord{tr, tr, {Family: "nonsense"}, {Family: "ip6", Name: "weft"}}}}},
	}
	dump = append(dump, kernel.Table{ID: ipDeny, Chains: []kernel.Chain{{}}, Sets: []kernel.Set{{}}})
	for i, r := range records {
		s := merge.New()
		adopt.Dump(s, dump, r)
		checkInvariants(t, s)
		if p := planner.Make(s); !noOps(p) {
			t.Errorf("record %d: plan after Adopt:\n%s", i, planText(p))
		}
	}
	for _, owner := range []string{"", "/", "a/", "/b", "ab"} {
		if k, ok := desired.ParseKey(owner); ok {
			t.Errorf("parseKey(%q) = %v", owner, k)
		}
	}
}

// repair commits a Diff and checks that nothing is left to do.
func (h *harness) repair() *desired.Plan {
	h.t.Helper()
	p := planner.Diff(h.State, h.k.dump())
	for i, o := range p.Origin {
		if o != -1 {
			h.t.Errorf("op %d %s of a diff has origin %d", i, opText(p.Ops[i]), o)
		}
	}
	h.k.execute(h.t, p)
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
			same(t, "kernel", h.k.text(), want)
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
