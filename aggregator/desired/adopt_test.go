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
	if err != nil {
		h.t.Fatal(err)
	}
	var again desired.Record
	if err := json.Unmarshal(b, &again); err != nil {
		h.t.Fatal(err)
	}
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
	p := h.commit(snapshot(services, 0, in(ipWeft, addrSet("s", member("10.0.0.2"), member("10.0.0.3")), base("input", 0, rule("a"), rule("c")))))
	if want := "delete rule input\ndelete elements s 1\nadd elements s 1\n"; planText(p) != want {
		t.Errorf("plan:\n%s\nwant:\n%s", planText(p), want)
	}
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
	if p := h.commit(two); planText(p) != "delete elements s 1\n" {
		t.Errorf("plan when both are back:\n%s", planText(p))
	}
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
	if p := h.commit(snapshot(policy, 0)); planText(p) != "delete elements s 1\nadd elements s 1\n" {
		t.Errorf("plan when the winner is withdrawn:\n%s", planText(p))
	}
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
	p := h.commit(patch(services, in(ipWeft, desired.Elements{Set: "s", Remove: []nftset.Element{member("10.0.0.2")}})))
	if planText(p) != "delete elements s 1\n" {
		t.Errorf("plan of a removal:\n%s", planText(p))
	}
	if err := h.DropUnclaimed(allTables); err != nil {
		t.Fatal(err)
	}
	if p := h.commit(); planText(p) != "delete set old\n" {
		t.Errorf("plan of dropping the unclaimed:\n%s", planText(p))
	}
	if u := unclaimedOf(h.State); len(u) != 0 {
		t.Errorf("unclaimed after dropping: %v", u)
	}
}

func TestUnclaimedYields(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, addrMap("m", mapped("10.0.0.1", "10.1.0.1"), mapped("10.0.0.2", "10.1.0.2")), base("input", 0))))
	h.restart(desired.Record{})
	// Another value wins, and another declaration makes the set anew.
	p := h.commit(snapshot(policy, 0, in(ipWeft, addrMap("m", mapped("10.0.0.1", "10.1.0.9")))))
	if planText(p) != "delete elements m 1\nadd elements m 1\n" {
		t.Errorf("plan of another value:\n%s", planText(p))
	}
	if st, _ := views.Fragment(h.State, policy); st.Shadowed != 0 {
		t.Errorf("status %+v", st)
	}
	p = h.commit(snapshot(policy, 0, in(ipWeft, addrSet("m", member("10.0.0.5")), base("input", 5))))
	if want := "delete set m\ndelete chain input\nadd set m\nadd chain input\nadd elements m 1\n"; planText(p) != want {
		t.Errorf("plan of other declarations:\n%s\nwant:\n%s", planText(p), want)
	}
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
	if err := h.DropUnclaimed(allTables); err != nil {
		t.Fatal(err)
	}
	if p := h.commit(); planText(p) != "delete rule input\n" {
		t.Errorf("plan of dropping:\n%s", planText(p))
	}
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
	if err := h.DropUnclaimed(allTables); err != nil {
		t.Fatal(err)
	}
	if p := h.commit(); planText(p) != "delete table weft\n" {
		t.Errorf("plan:\n%s", planText(p))
	}
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
	if p := h.commit(fragment()); planText(p) != "delete elements affinity 1\n" {
		t.Errorf("plan of its own element:\n%s", planText(p))
	}
	if n := len(h.k.tables[ipWeft].sets["affinity"].elements); n != 1 {
		t.Errorf("%d elements, want that of the packet", n)
	}
	h.restart(desired.Record{})
	if err := h.DropUnclaimed(allTables); err != nil {
		t.Fatal(err)
	}
	if p := h.commit(); planText(p) != "delete table weft\n" {
		t.Errorf("plan of dropping all:\n%s", planText(p))
	}
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
