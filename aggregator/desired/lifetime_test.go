package desired

import (
	"testing"
)

// TestRecordedLifetime changes lifetimes and checks what a crash before the
// commit, and one after it, would leave.
func TestRecordedLifetime(t *testing.T) {
	s := New()
	put := func(l Lifetime) {
		t.Helper()
		u := snapshot(policy, 0, in(ipWeft, regular("c")))
		u.Lifetime = l
		if err := s.Apply(u); err != nil {
			t.Fatal(err)
		}
	}
	recorded := func(when string, want Lifetime) {
		t.Helper()
		if r := s.Record(); len(r.Fragments) != 1 || parseLifetime(r.Fragments[0].Lifetime) != want {
			t.Errorf("recorded %s: %+v, want %v", when, r, want)
		}
	}
	put(LifetimeSticky)
	recorded("before the first commit", LifetimeSticky)
	s.Accept()
	put(LifetimeSession)
	recorded("before the commit", LifetimeSticky)
	version := s.RecordVersion()
	s.Accept()
	recorded("after the commit", LifetimeSession)
	if s.RecordVersion() == version {
		t.Error("the record is not written again")
	}
	put(LifetimeSticky)
	recorded("before the way back is committed", LifetimeSticky)
	s.Rollback()
	recorded("after a refusal", LifetimeSession)
	// A fragment that is withdrawn and comes back is not a new one.
	s.Accept()
	put(LifetimeSticky)
	s.Accept()
	if err := s.Apply(snapshot(policy, 0)); err != nil {
		t.Fatal(err)
	}
	put(LifetimeSession)
	recorded("before a withdrawal and a return are committed", LifetimeSticky)
	for _, name := range []string{"", "durable", "unheard of"} {
		if got := parseLifetime(name).String(); got != name && got != "sticky" {
			t.Errorf("lifetime %q is read as %q", name, got)
		}
	}
}
