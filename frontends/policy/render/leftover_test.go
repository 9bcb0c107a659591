package render

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// hashed is a name as that of an object with a content.
func hashed(prefix string) string { return prefix + "-0123456789" }

// leftTable has an object of each kind, and objects that always exist.
func leftTable() *weftv1.Table {
	address := families[0].address
	return &weftv1.Table{
		Family: "ip", Name: Table,
		Chains:  []*weftv1.Chain{chain(chainEgressAllowed, "accept"), chain(hashed("policy")+"-shop/db", "accept"), chain("ingress-012345678", "accept"), chain("-0123456789")},
		Sets:    []*weftv1.Set{{Name: setSelf, Type: address}, {Name: hashed("sel"), Type: address}, {Name: hashed("sel"), Type: address, Comment: "the second part"}},
		Maps:    []*weftv1.Set{{Name: mapNames[ingress], Type: address + " : verdict"}, {Name: hashed("dispatch"), Type: "inet_service : verdict"}},
		Objects: []*weftv1.Object{{Kind: "counter", Name: hashed("rule") + "-shop/db"}},
	}
}

// TestNewLeftovers finds the objects of an earlier process that can be without a use.
func TestNewLeftovers(t *testing.T) {
	var names []string
	for _, o := range newLeftovers(leftTable()).sorted() {
		names = append(names, o.name)
		if !o.declared {
			t.Errorf("%s is not declared", o.name)
		}
	}
	want := []string{hashed("dispatch"), hashed("policy") + "-shop/db", hashed("rule") + "-shop/db", hashed("sel")}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if left := newLeftovers(leftTable())[hashed("sel")]; left.content.(*weftv1.Set).GetComment() != "" {
		t.Error("the second part of a set replaces the first")
	}
	// What the aggregator adopted from the kernel has no types.
	adopted := leftTable()
	adopted.Sets[0].Type = ""
	if left := newLeftovers(adopted); len(left) != 0 {
		t.Errorf("%d leftovers of an adopted table", len(left))
	}
	if left := newLeftovers(nil); len(left) != 0 {
		t.Errorf("%d leftovers of no table", len(left))
	}
}

// TestAdoptLeftovers compares objects with those that an earlier process left.
func TestAdoptLeftovers(t *testing.T) {
	in := leftTable()
	named := func(name string, o *object) *object { o.name = name; return o }
	for _, test := range []struct {
		name string
		o    *object
		same bool
	}{
		{"the same chain", named(hashed("policy")+"-shop/db", &object{content: in.Chains[1]}), true},
		{"another chain", named(hashed("policy")+"-shop/db", &object{content: chain(hashed("policy")+"-shop/db", "drop")}), false},
		{"the same set", named(hashed("sel"), &object{content: in.Sets[1]}), true},
		{"another set", named(hashed("sel"), &object{content: in.Sets[2]}), false},
		{"a set of pods", named(hashed("sel"), &object{members: &members{}}), false},
		{"the same map", named(hashed("dispatch"), &object{content: in.Maps[1], verdicts: true}), true},
		{"the same counter", named(hashed("rule")+"-shop/db", &object{content: in.Objects[0]}), true},
		{"a new chain", named("policy-abcdefabcd", &object{content: in.Chains[1]}), false},
	} {
		left := newLeftovers(leftTable())
		if got := left.adopt(test.o); got != test.same {
			t.Errorf("%s: the same is %v", test.name, got)
		}
		if left[test.o.name] != nil {
			t.Errorf("%s: it is still left", test.name)
		}
	}
}

// TestLeftoversStayUntilCleanup restarts with fewer policies: what they needed is in the
// snapshot, and goes with the cleanup.
func TestLeftoversStayUntilCleanup(t *testing.T) {
	f := newFixture(t)
	f.set("s", "11.0.0.1")
	f.policy("a/p", []model.Rule{{Pods: []model.SetID{"s"}, Blocks: blocks("192.0.2.0/24", "198.51.100.0/24"), Ports: ports("tcp 1-2", "tcp 5")}}, nil)
	f.policy("a/q", everyone, nil)
	f.pod("a/0", "10.0.0.1", []string{"a/p", "a/q"}, nil)
	f.finish()
	has := func(r ruleset, name string) bool { return strings.Contains(r.String(), name) }
	if !has(f.rules, "a/p-ingress") || !has(f.rules, "block-") {
		t.Fatal("the policy has no chain or no set")
	}

	again := f.restarted()
	delete(again.policies, policyID("a/p"))
	again.pod("a/0", "10.0.0.1", []string{"a/q"}, nil)
	again.start()
	if !has(again.rules, "a/p-ingress") || !has(again.rules, "block-") || !again.r.Idle() {
		t.Error("the snapshot removes what the earlier process needed")
	}
	again.rules.patch(t, again.r.Cleanup())
	again.compare()
	if has(again.rules, "a/p-ingress") || has(again.rules, "block-") || again.r.Idle() {
		t.Errorf("after the cleanup: %s", again.rules)
	}
}

// TestRestoreWhatCannotBeRead ignores tables, keys and verdicts that this package does not
// write.
func TestRestoreWhatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	f.policy("a/p", nil, nil)
	f.pod("a/0", "10.0.0.1", []string{"a/p"}, nil)
	f.finish()
	left := f.r.Snapshot()
	left.Tables = append(left.Tables, &weftv1.Table{Family: "ip", Name: "other"}, &weftv1.Table{Family: "inet", Name: Table})
	of := left.Tables[0]
	for _, s := range of.GetSets() {
		if s.GetName() == setRecheck {
			s.Elements = []*weftv1.Element{{Key: "garbage"}, {Key: "fd00::1"}, {Key: "10.0.0.7"}}
		}
	}
	of.Sets = append(of.Sets, &weftv1.Set{Name: hashed("sel"), Type: families[0].address, Elements: []*weftv1.Element{{Key: "garbage"}}})
	for _, m := range of.GetMaps() {
		m.Elements = append(m.Elements, &weftv1.Element{Key: "garbage", Value: "goto x"}, &weftv1.Element{Key: "10.0.0.8", Value: "drop"})
	}
	again := newFixture(t)
	again.r.Restore(left)
	again.pods, again.policies = f.pods, f.policies
	again.start()
	if got := again.r.Rechecked(); len(got) != 1 || got[0].Addr != netip.MustParseAddr("10.0.0.7") {
		t.Errorf("rechecked: %v", got)
	}
	again.compare()
}
