package desired_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
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

func TestApplyRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		update *desired.Update
		reason desired.Reason
		object string
		words  []string
	}{
		"patch of nothing":   {patch(extra, in(ipWeft, regular("c"))), desired.ReasonSnapshotNeeded, "", []string{"snapshot"}},
		"conntrack of a set": {snapshot(policy, 0, in(ipWeft, desired.Set{Decl: addrSet("s").Decl, Conntrack: true})), desired.ReasonInvalid, "table ip weft map s", []string{"inet_proto"}},
		"elements of another's set": {patch(policy, in(ipWeft, desired.Elements{Set: "s", Add: []nftset.Element{member("10.0.0.1")}})),
			desired.ReasonReference, "table ip weft set s", []string{"policy/web", "declare"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.commit(snapshot(services, 0, in(ipWeft, addrSet("s"))), snapshot(policy, 0, in(ipWeft, regular("c"))))
			h.reject(tt.update, tt.reason, tt.object, tt.words...)
		})
	}
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
