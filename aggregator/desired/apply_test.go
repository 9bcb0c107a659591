package desired_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft/compile"
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
	same(h.t, "the state after a rejected update", stateText(h.State), before)
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
	wantPlan(t, "plan", h.commit(patch(policy, tu)), "delete elements blocked 1\nadd chain extra\nadd elements blocked 1\n")
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
	mine := in(ipWeft, addrSet("s"), addrMap("m"), base("input", 0), regular("r"), declared("limit l", "rate 1/second"))
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
		{"object", in(ipWeft, declared("limit l", "rate 2/second")), "limit l", nil},
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
	same(t, "the state after stale updates", stateText(h.State), before)
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

func TestDanglingReferences(t *testing.T) {
	tests := []struct {
		name   string
		table  desired.TableUpdate
		object string
		words  []string
	}{
		{"set", in(ipWeft, regular("c", rule("accept"), rule("ip saddr @s drop", "@s"))), "chain c rule 2", []string{"set s", "does not exist"}},
		{"chain", in(ipWeft, regular("c", rule("jump d", "d"))), "chain c rule 1", []string{"chain d", "does not exist"}},
		{"element", in(ipWeft, verdictMap("v", leads(dest("10.0.0.1", 6, 80), "pick"))), "map v element", []string{"chain pick", "does not exist"}},
		{"other table", in(ipDeny, regular("c", rule("jump there", "there"))), "chain c rule 1", []string{"ip deny"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			h.commit(snapshot(services, 0, in(ipWeft, regular("there"))))
			err := h.Apply(snapshot(policy, 0, tt.table))
			var r *desired.Rejection
			if !errors.As(err, &r) || len(r.Violations) != 1 || r.Violations[0].Reason != desired.ReasonReference {
				t.Fatalf("Apply: %v, want one violation of a reference", err)
			}
			if got, want := r.Violations[0].Object.String(), "table "+tt.table.Table.String()+" "+tt.object; len(got) < len(want) || got[:len(want)] != want {
				t.Errorf("object %q, want %q", got, want)
			}
			h.reject(snapshot(policy, 0, tt.table), desired.ReasonReference, r.Violations[0].Object.String(), tt.words...)
			h.commit(snapshot(extra, 0, in(tt.table.Table, addrSet("s"), regular("d"), regular("pick"), regular("there"))), snapshot(policy, 0, tt.table))
		})
	}
}

func TestRemovalNamesDependents(t *testing.T) {
	h := newHarness(t)
	h.commit(
		snapshot(services, 0, in(ipWeft, addrSet("s"), regular("pick"), regular("other"))),
		snapshot(policy, 0, in(ipWeft, base("input", 0, rule("ip saddr @s drop", "@s")))),
		snapshot(extra, 0, in(ipWeft, verdictMap("v", leads(dest("10.0.0.1", 6, 80), "pick"), leads(dest("10.0.0.1", 6, 81), "pick")))),
	)
	h.reject(snapshot(services, 0, in(ipWeft, regular("pick"), regular("other"))), desired.ReasonReference, "table ip weft set s",
		"chain input rule 1 of fragment policy/web refers to it")
	h.reject(snapshot(services, 0, in(ipWeft, addrSet("s"))), desired.ReasonReference, "table ip weft chain pick",
		"map v element", "and 1 more", "fragment zeta/extra")
	tu := in(ipWeft)
	tu.DeleteChains, tu.DeleteSets = []string{"other"}, []string{"s"}
	h.reject(patch(services, tu), desired.ReasonReference, "table ip weft set s", "policy/web")
	if err := h.Apply(snapshot(services, 0)); err == nil {
		t.Error("withdrawal of what is in use was accepted")
	}
	// Once another fragment has the objects too, the first may go.
	h.commit(snapshot(extra, 0, in(ipWeft, addrSet("s"), regular("pick"))), snapshot(services, 0))
}

func TestReferenceToBaseChain(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, base("input", 0), regular("pick"))))
	h.reject(snapshot(policy, 0, in(ipWeft, regular("c", rule("jump input", "input")))), desired.ReasonInvalid, "table ip weft chain c rule 1", "base chain")
	h.commit(snapshot(policy, 0, in(ipWeft, regular("c", rule("jump pick", "pick")))))
	h.reject(snapshot(services, 0, in(ipWeft, base("pick", 0))), desired.ReasonInvalid, "table ip weft chain pick", "base chain", "policy/web")
}

func TestRedeclareInUse(t *testing.T) {
	h := newHarness(t)
	uses := rule("ip saddr @s drop", "@s")
	h.commit(
		snapshot(services, 0, in(ipWeft, addrSet("s", member("10.0.0.1")))),
		snapshot(policy, 0, in(ipWeft, base("input", 0, rule("first"), uses, rule("last")))),
	)
	// Other types: the rule that others compiled means nothing any more.
	other := desired.Set{Decl: &nftset.Set{Name: "s", Key: typeAddr6}}
	h.reject(snapshot(services, 0, in(ipWeft, other)), desired.ReasonConflict, "table ip weft set s", "key type ipv4_addr, not ipv6_addr", "policy/web")
	// Other flags: the set is made anew, and the rule beside it.
	tu := in(ipWeft, other)
	tu.DeleteSets = []string{"s"}
	h.reject(patch(services, tu), desired.ReasonConflict, "table ip weft set s", "policy/web")
	p := h.commit(snapshot(services, 0, in(ipWeft, withFlags(addrSet("s", member("10.0.0.1")), nftset.FlagTimeout))))
	want := "delete rule input\ndelete set s\nadd set s\nadd elements s 1\nadd rule input ip saddr @s drop\n"
	wantPlan(t, "plan", p, want)
	// The new handle is the rule's from now on.
	h.commit(snapshot(policy, 0, in(ipWeft, base("input", 0, rule("first"), rule("last")))))
}

func TestDependentsAreBounded(t *testing.T) {
	h := newHarness(t)
	rules := make([]*compile.Rule, 10)
	for i := range rules {
		rules[i] = rule("saddr @s", "@s")
	}
	h.commit(snapshot(services, 0, in(ipWeft, addrSet("s"))), snapshot(policy, 0, in(ipWeft, base("input", 0, rules...))))
	h.reject(snapshot(services, 0), desired.ReasonReference, "table ip weft set s", "rule 4 of fragment", "and 6 more")
}

func TestRejectionError(t *testing.T) {
	v := desired.Violation{Object: desired.Place{Table: ipWeft, Kind: "chain", Name: "c"}, Message: "is wrong", Reason: desired.ReasonConflict}
	tests := []struct {
		r    desired.Rejection
		want string
	}{
		{desired.Rejection{Fragment: policy}, "apply fragment policy/web"},
		{desired.Rejection{policy, []desired.Violation{v}}, "apply fragment policy/web: table ip weft chain c: is wrong"},
		{desired.Rejection{policy, []desired.Violation{{Message: "snapshot first"}, v, v}}, "apply fragment policy/web: snapshot first (and 2 more)"},
	}
	for _, tt := range tests {
		same(t, "text of the error", tt.r.Error(), tt.want)
	}
}

func TestViolationsAreBounded(t *testing.T) {
	h := newHarness(t)
	tu := in(ipWeft)
	for range 3 * desired.MaxViolations {
		tu.Elements = append(tu.Elements, desired.Elements{Set: "not declared"})
	}
	var r *desired.Rejection
	if err := h.Apply(snapshot(policy, 0, tu)); !errors.As(err, &r) || len(r.Violations) != desired.MaxViolations {
		t.Errorf("Apply: %v, want %d violations", err, desired.MaxViolations)
	}
}

func TestIntervals(t *testing.T) {
	h := newHarness(t)
	wide := nftset.Element{Key: addr("10.0.0.0"), KeyEnd: addr("10.255.255.255")}
	narrow := nftset.Element{Key: addr("10.0.0.0"), KeyEnd: addr("10.0.0.255")}
	h.commit(snapshot(policy, 0, in(ipWeft, intervalSet("i", wide))))
	h.commit(patch(policy, in(ipWeft, desired.Elements{Set: "i", Remove: []nftset.Element{wide}, Add: []nftset.Element{narrow}})))
	same(t, "elements", len(h.k.tables[ipWeft].sets["i"].elements), 1)
	single := intervalSet("i").Decl
	a, b := member("10.0.0.1"), member("10.0.0.1")
	b.KeyEnd = b.Key
	if packed.ID(single, &a) != packed.ID(single, &b) {
		t.Error("a single value without end is another element than with it")
	}
}

func TestElementOptionsReplace(t *testing.T) {
	h := newHarness(t)
	s := withFlags(addrSet("s"), nftset.FlagTimeout)
	d := *s.Decl
	d.Timeout = time.Minute
	s.Decl = &d
	e := member("10.0.0.1")
	s.Elements = []nftset.Element{e}
	h.commit(snapshot(policy, 0, in(ipWeft, s)))
	for _, tt := range []struct {
		timeout time.Duration
		comment string
		ops     int
	}{
		{time.Minute, "", 1}, // the set's own: it is renewed
		{time.Minute + time.Millisecond, "", 1},
		{time.Hour, "", 2},
		{time.Hour, "why", 2},
		{time.Hour, "why", 1},
	} {
		e.Timeout, e.Comment = tt.timeout, tt.comment
		p := h.commit(patch(policy, in(ipWeft, desired.Elements{Set: "s", Add: []nftset.Element{e}})))
		if len(p.Ops) != tt.ops {
			t.Errorf("timeout %s comment %q: plan:\n%s\nwant %d ops", tt.timeout, tt.comment, planText(p), tt.ops)
		}
	}
}

func TestRepeatedElements(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(policy, 0, in(ipWeft, addrMap("m", mapped("10.0.0.1", "10.1.0.1"), mapped("10.0.0.1", "10.1.0.2")))))
	same(t, "the value, which is the last", h.k.tables[ipWeft].sets["m"].elements[addr("10.0.0.1")].Data, addr("10.1.0.2"))
	p := h.commit(snapshot(policy, 0, in(ipWeft, addrMap("m", mapped("10.0.0.1", "10.1.0.1"), mapped("10.0.0.1", "10.1.0.2")))))
	if !noOps(p) {
		t.Errorf("plan of the same again:\n%s", planText(p))
	}
}

// cluster is the snapshot of a number of services with some endpoints each,
// every other one UDP, as the Service frontend publishes them.
func cluster(count, endpoints int) *desired.Update {
	vips := make([]nftset.Element, 0, count)
	slots := make([]nftset.Element, 0, count*endpoints)
	chain := fmt.Sprintf("pick-%d", endpoints)
	for i := range count {
		proto := []byte{6, 17}[i%2]
		vip := vipOf(i)
		vips = append(vips, leads(dest(vip, proto, 80), chain))
		for j := range endpoints {
			slots = append(slots, endpoint(vip, proto, 80, uint32(j), backendOf(i, j)))
		}
	}
	pick := regular(chain, rule("dnat to numgen random mod N map @endpoints", "@endpoints"))
	entry := base("prerouting", -100, rule("dest vmap @services", "@services"))
	return snapshot(services, 0, in(ipWeft, verdictMap("services", vips...), endpointMap("endpoints", slots...), pick, entry))
}

func vipOf(i int) string { return ipv4(10<<24 | 96<<16 | uint32(i)) }

func backendOf(i, j int) string { return ipv4(10<<24|1<<16+uint32(i*16+j)) + ":8080" }

func ipv4(n uint32) string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b).String()
}
