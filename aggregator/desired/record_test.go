package desired_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func TestRecord(t *testing.T) {
	h := newHarness(t)
	one := in(ipWeft, endpointMap("e"), addrSet("s"), regular("d"), regular("c", rule("a", "@s", "d"), rule("b", "@e", "@s")))
	one.Comment = "hello"
	h.commit(snapshot(services, 0, one, in(ipDeny, addrSet("x"))), snapshot(policy, -3, in(ipWeft, addrSet("s", member("10.0.0.1")))))
	want := desired.Record{Fragments: []desired.FragmentRecord{
		{Publisher: "policy", Name: "web", Priority: -3, Tables: []desired.TableRecord{{Family: "ip", Name: "weft", Sets: []desired.SetRecord{{Name: "s"}}}}},
		{Publisher: "services", Name: "all", Tables: []desired.TableRecord{
			{Family: "ip", Name: "deny", Sets: []desired.SetRecord{{Name: "x"}}},
			{Family: "ip", Name: "weft", Comment: "hello",
				Chains: []desired.ChainRecord{{Name: "c", Sets: []string{"e", "s"}, Chains: []string{"d"}}, {Name: "d"}},
				Sets:   []desired.SetRecord{{Name: "e", Conntrack: true}, {Name: "s"}}},
		}},
	}}
	if got := views.Record(h.State); !reflect.DeepEqual(got, want) {
		t.Errorf("record:\n%+v\nwant:\n%+v", got, want)
	}
}

func TestRecordVersion(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, endpointMap("e"), regular("c", rule("a")))))
	steps := []struct {
		name    string
		update  *desired.Update
		changes bool
	}{
		{"elements", patch(services, in(ipWeft, desired.Elements{Set: "e", Add: slotsOf("10.96.0.1", udp, "10.1.0.1:53")})), false},
		{"rules", patch(services, in(ipWeft, regular("c", rule("b")))), false},
		{"references", patch(services, in(ipWeft, regular("c", rule("b", "@e")))), true},
		{"sets", patch(services, in(ipWeft, addrSet("s"))), true},
		{"priority", snapshot(services, 1, in(ipWeft, endpointMap("e"))), true},
		{"conntrack", snapshot(services, 1, in(ipWeft, desired.Set{Decl: endpointMap("e").Decl, Elements: []nftset.Element{}})), true},
		{"withdrawal", snapshot(services, 0), true},
	}
	for _, st := range steps {
		before := h.RecordVersion()
		h.commit(st.update)
		same(t, st.name+": the version changes", h.RecordVersion() != before, st.changes)
	}
}

// TestRecordApart changes a table with many shares. What was stored of the records, some of which
// could not be, has each share as it is, and so has the scope each declaration.
func TestRecordApart(t *testing.T) {
	h := newHarness(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	name := func() string { return fmt.Sprintf("o%d", r.IntN(900)) }
	all := desired.TableUpdate{Table: ipWeft}
	for i := range 700 {
		all.PutSets = append(all.PutSets, addrSet(fmt.Sprintf("o%d", i)))
	}
	h.commit(snapshot(services, 0, all), snapshot(policy, 0, in(ipWeft, addrSet("o1", member("10.0.0.1")))))
	stored, whole := map[string]*desired.TableRecord{}, 0
	for step := range 300 {
		tu := in(ipWeft, addrSet(name()))
		for range r.IntN(4) {
			set := name()
			tu.PutSets = append(tu.PutSets, addrSet(set))
			tu.PutChains = append(tu.PutChains, regular(name(), rule("a", "@"+set)))
			tu.DeleteChains = append(tu.DeleteChains, name())
		}
		h.commit(patch(services, tu))
		record := views.Record(h.State)
		tr := &record.Fragments[1].Tables[0]
		if len(tr.Sets) > 0 || !tr.Apart {
			t.Fatal("the shares are not apart")
		}
		if r.IntN(3) > 0 {
			if tr.Whole {
				clear(stored)
				whole++
			}
			maps.Copy(stored, tr.Shares)
			h.Recorded()
		}
		if step%20 != 19 {
			continue
		}
		tr = &views.Record(h.State).Fragments[1].Tables[0]
		maps.Copy(stored, tr.Shares)
		holding := h.Fragments[services].Tables[ipWeft]
		for key, share := range stored {
			if share == nil {
				delete(stored, key)
			}
		}
		if len(stored) != len(holding.Shares) {
			t.Fatalf("%d shares are stored of %d", len(stored), len(holding.Shares))
		}
		for id := range holding.Shares {
			if want := views.RecordShare(holding, id); !reflect.DeepEqual(stored[id.String()], want) {
				t.Fatalf("%s is stored as %+v, want %+v", id, stored[id.String()], want)
			}
		}
		scope := h.Scope().Table(ipWeft)
		for i := range 900 {
			for _, id := range []merge.ObjectID{merge.SetID(fmt.Sprintf("o%d", i)), merge.ChainID(fmt.Sprintf("o%d", i))} {
				var want any
				if o := h.Tables[ipWeft].Parts[id]; o != nil && o.Exists() {
					want = o.Declared()
				}
				if got := scope.Decl(id); got != want {
					t.Fatalf("the scope has %v for %s, want %v", got, id, want)
				}
			}
		}
	}
	if whole != 1 {
		t.Errorf("all shares were stored %d times, want once", whole)
	}
}

// TestRecordedLifetime changes lifetimes and checks what a crash before the
// commit, and one after it, would leave.
func TestRecordedLifetime(t *testing.T) {
	s := merge.New()
	put := func(l desired.Lifetime) {
		t.Helper()
		u := snapshot(policy, 0, in(ipWeft, regular("c")))
		u.Lifetime = l
		must(t, s.Apply(u))
	}
	recorded := func(when string, want desired.Lifetime) {
		t.Helper()
		if r := views.Record(s); len(r.Fragments) != 1 || desired.ParseLifetime(r.Fragments[0].Lifetime) != want {
			t.Errorf("recorded %s: %+v, want %v", when, r, want)
		}
	}
	put(desired.LifetimeSticky)
	recorded("before the first commit", desired.LifetimeSticky)
	planner.Accept(s)
	put(desired.LifetimeSession)
	recorded("before the commit", desired.LifetimeSticky)
	version := s.RecordVersion()
	planner.Accept(s)
	recorded("after the commit", desired.LifetimeSession)
	if s.RecordVersion() == version {
		t.Error("the record is not written again")
	}
	put(desired.LifetimeSticky)
	recorded("before the way back is committed", desired.LifetimeSticky)
	s.Rollback()
	recorded("after a refusal", desired.LifetimeSession)
	// A fragment that is withdrawn and comes back is not a new one.
	planner.Accept(s)
	put(desired.LifetimeSticky)
	planner.Accept(s)
	must(t, s.Apply(snapshot(policy, 0)))
	put(desired.LifetimeSession)
	recorded("before a withdrawal and a return are committed", desired.LifetimeSticky)
	for _, name := range []string{"", "durable", "unheard of"} {
		if got := desired.ParseLifetime(name).String(); got != name && got != "sticky" {
			t.Errorf("lifetime %q is read as %q", name, got)
		}
	}
}

func TestScope(t *testing.T) {
	h := newHarness(t)
	before := h.Scope()
	h.apply(snapshot(services, 0, in(ipWeft, addrSet("s"), regular("c"))), snapshot(policy, 0, in(ipDeny, addrSet("d"))))
	scope := h.Scope()
	if _, ok := before.Table(ipWeft).Set("s"); ok {
		t.Error("an older scope has changed")
	}
	if d, ok := scope.Table(ipWeft).Set("s"); !ok || d.Name != "s" {
		t.Errorf("set s is %v, %t", d, ok)
	}
	if !scope.Table(ipWeft).Chain("c") || scope.Table(ipWeft).Chain("d") || scope.Table(ipDeny).Chain("c") {
		t.Error("chains are wrong")
	}
	h.commit(patch(services, in(ipWeft, desired.Elements{Set: "s", Add: []nftset.Element{member("10.0.0.1")}})))
	if h.Scope() != scope {
		t.Error("elements made a new scope")
	}
	h.commit(snapshot(policy, 0, in(ipDeny, addrSet("e"))))
	next := h.Scope()
	if next.Table(ipWeft) != scope.Table(ipWeft) {
		t.Error("a table whose declarations are the same was built anew")
	}
	if _, ok := next.Table(ipDeny).Set("d"); ok {
		t.Error("set d is still declared")
	}
	h.apply(snapshot(policy, 0))
	if _, ok := h.Scope().Table(ipDeny).Set("e"); ok {
		t.Error("set e is declared after its withdrawal")
	}
	h.Rollback()
	if _, ok := h.Scope().Table(ipDeny).Set("e"); !ok {
		t.Error("set e is not declared after Rollback")
	}
}
