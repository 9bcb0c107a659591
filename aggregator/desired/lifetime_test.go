package desired_test

import (
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
)

// TestRecordedLifetime changes lifetimes and checks what a crash before the
// commit, and one after it, would leave.
func TestRecordedLifetime(t *testing.T) {
	s := merge.New()
	put := func(l desired.Lifetime) {
		t.Helper()
		u := snapshot(policy, 0, in(ipWeft, regular("c")))
		u.Lifetime = l
		if err := s.Apply(u); err != nil {
			t.Fatal(err)
		}
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
	if err := s.Apply(snapshot(policy, 0)); err != nil {
		t.Fatal(err)
	}
	put(desired.LifetimeSession)
	recorded("before a withdrawal and a return are committed", desired.LifetimeSticky)
	for _, name := range []string{"", "durable", "unheard of"} {
		if got := desired.ParseLifetime(name).String(); got != name && got != "sticky" {
			t.Errorf("lifetime %q is read as %q", name, got)
		}
	}
}
