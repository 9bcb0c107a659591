package desired_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// reject applies an update that must be rejected with one violation, and
// checks that the state is as before.
func (h *harness) reject(u *desired.Update, reason desired.Reason, object string, words ...string) {
	h.t.Helper()
	before := stateText(h.State)
	err := h.Apply(u)
	var r *desired.Rejection
	if !errors.As(err, &r) {
		h.t.Fatalf("Apply: %v, want a rejection", err)
	}
	if after := stateText(h.State); after != before {
		h.t.Fatalf("rejected update changed the state:\n%s\nwant:\n%s", after, before)
	}
	if r.Fragment != u.Fragment || len(r.Violations) != 1 {
		h.t.Fatalf("rejection of %s: %v, want one violation of %s", r.Fragment, r.Violations, u.Fragment)
	}
	v := r.Violations[0]
	if v.Reason != reason || v.Object.String() != object {
		h.t.Errorf("violation %v at %q, want %v at %q (%s)", v.Reason, v.Object, reason, object, v.Message)
	}
	for _, w := range words {
		if !strings.Contains(v.Message, w) {
			h.t.Errorf("message %q does not say %q", v.Message, w)
		}
	}
}

func TestApplyPatchNeedsSnapshot(t *testing.T) {
	h := newHarness(t)
	h.reject(patch(policy, in(ipWeft, regular("c"))), desired.ReasonSnapshotNeeded, "", "snapshot")
}

func TestApplyPatch(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(policy, 0, in(ipWeft,
		addrSet("blocked", member("10.0.0.1"), member("10.0.0.2")),
		base("input", 0, rule("ip saddr @blocked drop", "@blocked")))))
	tu := in(ipWeft,
		desired.Elements{Set: "blocked", Remove: []nftset.Element{member("10.0.0.1"), member("10.9.9.9")}, Add: []nftset.Element{member("10.0.0.3")}},
		regular("extra"))
	tu.DeleteChains, tu.DeleteSets = []string{"not there"}, []string{"nor this"}
	p := h.commit(patch(policy, tu))
	if got, want := planText(p), "delete elements blocked 1\nadd chain extra\nadd elements blocked 1\n"; got != want {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
	st, ok := views.Fragment(h.State, policy)
	if want := (desired.Status{Key: policy, Chains: 2, Rules: 1, Sets: 1, Elements: 2}); !ok || st != want {
		t.Errorf("status %+v, want %+v", st, want)
	}
}

func TestApplySnapshotReplaces(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(policy, 0,
		in(ipWeft, addrSet("a", member("10.0.0.1")), regular("c")),
		in(ipDeny, addrSet("b"))))
	p := h.commit(snapshot(policy, 0, in(ipWeft, addrSet("a", member("10.0.0.2")), regular("d"))))
	want := "delete elements a 1\ndelete chain c\nadd chain d\nadd elements a 1\ndelete table deny\n"
	if got := planText(p); got != want {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
	if p := h.commit(snapshot(policy, 0)); planText(p) != "delete table weft\n" {
		t.Errorf("plan of withdrawal:\n%s", planText(p))
	}
	if got := views.Fragments(h.State); len(got) != 0 {
		t.Errorf("fragments after withdrawal: %v", got)
	}
	if len(h.Tables) != 0 || h.k.text() != "" {
		t.Errorf("left over: %v, kernel:\n%s", h.Tables, h.k.text())
	}
}

func TestApplyInvalid(t *testing.T) {
	tests := []struct {
		name   string
		table  desired.TableUpdate
		object string
		words  []string
	}{
		{"conntrack of a set", in(ipWeft, desired.Set{Decl: addrSet("s").Decl, Conntrack: true}), "table ip weft map s", []string{"inet_proto"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			newHarness(t).reject(snapshot(policy, 0, tt.table), desired.ReasonInvalid, tt.object, tt.words...)
		})
	}
}

func TestApplyElementsOfOthers(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, addrSet("s"))), snapshot(policy, 0, in(ipWeft, regular("c"))))
	h.reject(patch(policy, in(ipWeft, desired.Elements{Set: "s", Add: []nftset.Element{member("10.0.0.1")}})),
		desired.ReasonReference, "table ip weft set s", "policy/web", "declare")
}

func TestApplyConflicts(t *testing.T) {
	mine := in(ipWeft, addrSet("s"), addrMap("m"), base("input", 0), regular("r"))
	tests := []struct {
		name   string
		table  desired.TableUpdate
		object string
		words  []string
	}{
		{"set flags", in(ipWeft, withFlags(addrSet("s"), nftset.FlagTimeout)), "set s", []string{"flags 0x0, not 0x10"}},
		{"set for map", in(ipWeft, addrMap("s")), "set s", []string{"map false, not true"}},
		{"set type", in(ipWeft, desired.Set{Decl: &nftset.Set{Name: "s", Key: typeAddr6}}), "set s", []string{"key type ipv4_addr, not ipv6_addr"}},
		{"priority", in(ipWeft, base("input", 10)), "chain input", nil},
		{"policy", in(ipWeft, withPolicy(base("input", 0), true)), "chain input", nil},
		{"regular beside base", in(ipWeft, regular("input")), "chain input", nil},
		{"base beside regular", in(ipWeft, base("r", 0)), "chain r", nil},
		{"comment", in(ipWeft, desired.Chain{Decl: &nftobject.Chain{Name: "r", Comment: "other"}}), "chain r", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			h.commit(snapshot(policy, 0, mine))
			// Precedence does not matter: what is accepted stays.
			for _, priority := range []int32{-1, 1} {
				h.reject(snapshot(extra, priority, tt.table), desired.ReasonConflict, "table ip weft "+tt.object, append(tt.words, "fragment policy/web")...)
			}
			// A fragment alone may change its mind.
			h.apply(snapshot(policy, 0, tt.table))
			h.commit(snapshot(extra, 0, tt.table))
		})
	}
}

func TestApplyStale(t *testing.T) {
	h := newHarness(t)
	old := addrSet("s")
	h.commit(snapshot(services, 0, in(ipWeft, old)), snapshot(policy, 0, in(ipWeft, regular("c"))))
	other := withFlags(old, nftset.FlagTimeout)
	h.commit(snapshot(services, 0, in(ipWeft, other)))

	tu := in(ipWeft, regular("c", rule("ip saddr @s drop", "@s")))
	tu.Uses = map[string]*nftset.Set{"s": old.Decl}
	before := stateText(h.State)
	if err := h.Apply(patch(policy, tu)); !errors.Is(err, desired.ErrStale) {
		t.Errorf("rule compiled for an older set: %v, want ErrStale", err)
	}
	eu := desired.Elements{Set: "s", Decl: old.Decl, Add: []nftset.Element{member("10.0.0.1")}}
	if err := h.Apply(patch(services, in(ipWeft, eu))); !errors.Is(err, desired.ErrStale) {
		t.Errorf("element packed for an older set: %v, want ErrStale", err)
	}
	if after := stateText(h.State); after != before {
		t.Errorf("stale updates changed the state:\n%s\nwant:\n%s", after, before)
	}
	tu.Uses["s"], _ = h.Scope().Table(ipWeft).Set("s")
	eu.Decl = tu.Uses["s"]
	h.commit(patch(policy, tu), patch(services, in(ipWeft, eu)))
}

func TestApplyPriority(t *testing.T) {
	h := newHarness(t)
	table := func(value, text string) desired.TableUpdate {
		return in(ipWeft, addrMap("m", mapped("10.0.0.1", value)), regular("c", rule(text)))
	}
	h.commit(snapshot(policy, 0, table("10.1.0.1", "policy")), snapshot(extra, 0, table("10.1.0.2", "extra")))
	if p := h.commit(snapshot(extra, 0, table("10.1.0.2", "extra"))); !noOps(p) {
		t.Errorf("plan of the same snapshot:\n%s", planText(p))
	}
	p := h.commit(snapshot(extra, -1, table("10.1.0.2", "extra")))
	if p.Counts != (desired.Counts{RulesAdded: 1, RulesDeleted: 1, ElementsAdded: 1, ElementsDeleted: 1}) {
		t.Errorf("counts %+v", p.Counts)
	}
	if st, _ := views.Fragment(h.State, policy); st.Shadowed != 1 {
		t.Errorf("status %+v, want one shadowed", st)
	}
	h.apply(snapshot(extra, 1, table("10.1.0.2", "extra")), snapshot(extra, -1, table("10.1.0.2", "extra")))
	if p := planner.Make(h.State); !noOps(p) {
		t.Errorf("plan of going and coming back:\n%s", planText(p))
	}
}

func TestApplyWorkIsThatOfTheChange(t *testing.T) {
	h := newHarness(t)
	h.commit(cluster(1_000, 10))
	before := h.Work()
	e := endpoint(vipOf(1), 17, 80, 3, "10.7.0.1:80")
	h.commit(patch(services, in(ipWeft, desired.Elements{Set: "endpoints", Add: []nftset.Element{e}})))
	after := h.Work()
	if after.Keys-before.Keys > 4 || after.Objects-before.Objects > 4 || after.Rules != before.Rules {
		t.Errorf("replacing one of 11,000 elements cost %+v after %+v", after, before)
	}
}
