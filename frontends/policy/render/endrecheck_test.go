package render

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// recheckFixture has one isolated pod, and a clock.
type recheckFixture struct {
	*fixture
	now time.Time
}

func newRecheckFixture(t *testing.T) *recheckFixture {
	out := &recheckFixture{now: time.Unix(1000, 0)}
	out.fixture = newFixture(t, func(c *Config) { c.RecheckFor, c.Now = time.Hour, func() time.Time { return out.now } })
	out.policy("a/p", nil, nil)
	out.pod("a/0", "10.0.0.1 fd00::1", []string{"a/p"}, []string{"a/p"})
	out.finish()
	return out
}

// narrow narrows addresses, and commits that after a second.
func (f *recheckFixture) narrow(a ...string) {
	f.t.Helper()
	f.narrowed = addresses(a...)
	f.finish()
	f.compare()
	f.now = f.now.Add(time.Second)
	f.r.Committed()
}

// end ends the recheck of all addresses but those that are denied.
func (f *recheckFixture) end(looked []Rechecked, denied ...string) (changed bool) {
	f.t.Helper()
	set := make(map[netip.Addr]struct{})
	for _, a := range addresses(denied...) {
		set[a] = struct{}{}
	}
	if changed = f.r.EndRecheck(looked, set); changed != f.r.Pending() {
		f.t.Errorf("changed is %v, pending %v", changed, f.r.Pending())
	}
	f.finish()
	f.compare()
	return changed
}

// rechecked returns the elements of recheck in both families.
func (f *recheckFixture) rechecked() string {
	var all []string
	for _, family := range families {
		c := f.rules[family.table]
		if c.chains[chainForward].GetRules()[0].GetText() == relatedOnly {
			all = append(all, "all")
		}
		for _, e := range load(f.t, f.r.Snapshot())[family.table].sets[setRecheck].elements {
			all = append(all, e.GetKey())
		}
	}
	return strings.Join(all, " ")
}

// TestEndRecheck ends the recheck of addresses without denied connections.
func TestEndRecheck(t *testing.T) {
	f := newRecheckFixture(t)
	f.narrowed = addresses("10.0.0.1")
	f.update()
	early := f.r.Rechecked()
	if len(early) != 1 || !early[0].Committed.IsZero() {
		t.Fatalf("before the commit: %v", early)
	}
	if f.end(early) {
		t.Error("the recheck ended before the commit")
	}
	f.narrow("10.0.0.1", "fd00::1")
	looked := f.r.Rechecked()
	if f.end(looked, "10.0.0.1") != true || f.rechecked() != "10.0.0.1" {
		t.Errorf("with a denied connection: %s", f.rechecked())
	}
	if got := f.r.Rechecked(); len(got) != 1 || !got[0].Committed.Equal(f.now) {
		t.Errorf("rechecked: %v", got)
	}
	// Narrowed again while its connections were looked at, although nothing is to be sent.
	looked = f.r.Rechecked()
	f.now = f.now.Add(time.Second)
	f.narrow("10.0.0.1")
	if f.end(looked) || f.rechecked() != "10.0.0.1" {
		t.Errorf("narrowed again meanwhile: %s", f.rechecked())
	}
	if !f.end(f.r.Rechecked()) || f.rechecked() != "" {
		t.Errorf("in the end: %s", f.rechecked())
	}
	if got := f.rules["ip"].chains[chainForward].GetRules()[0].GetText(); got != "ct state established,related accept" {
		t.Errorf("in the end: %s", got)
	}
}

// TestEndRecheckWaitsForSets has a pod that gets its chain once a large set is full.
func TestEndRecheckWaitsForSets(t *testing.T) {
	f := newRecheckFixture(t)
	f.set("s", many(2*manyMembers)...)
	f.policy("a/p", []model.Rule{{Pods: []model.SetID{"s"}, AllPorts: true}}, nil)
	f.narrowed = addresses("10.0.0.1")
	f.update()
	f.r.Committed()
	if got := f.r.Rechecked(); !f.r.Pending() || !got[0].Committed.IsZero() {
		t.Errorf("pending %v, rechecked %v: want one without a commit", f.r.Pending(), got)
	}
	f.finish()
	f.r.Committed()
	if got := f.r.Rechecked(); got[0].Committed.IsZero() {
		t.Errorf("with all members: %v", got)
	}
}

// TestEndRecheckOfEverything replaces the recheck of all connections by that of addresses.
func TestEndRecheckOfEverything(t *testing.T) {
	f := newRecheckFixture(t)
	f.narrow(many(maxRechecked + 1)...)
	if f.rechecked() != "all" {
		t.Fatalf("rechecked: %.100s", f.rechecked())
	}
	looked := f.r.Rechecked()
	if len(looked) != 1 || looked[0].Addr != netip.IPv4Unspecified() {
		t.Fatalf("rechecked: %v", looked)
	}
	if !f.end(looked, "10.0.0.1", "fd00::1") || f.rechecked() != "all 10.0.0.1" {
		t.Errorf("in the first step: %s", f.rechecked())
	}
	if f.end(f.r.Rechecked()[:1], "10.0.0.1") || f.rechecked() != "all 10.0.0.1" {
		t.Errorf("before the commit: %s", f.rechecked())
	}
	f.now = f.now.Add(time.Second)
	f.narrow("10.0.0.2", "10.0.0.1")
	if f.end(looked, "10.0.0.1") || f.rechecked() != "all 10.0.0.1" {
		t.Errorf("narrowed again meanwhile: %s", f.rechecked())
	}
	if !f.end(f.r.Rechecked(), "10.0.0.1") || f.rechecked() != "10.0.0.1" {
		t.Errorf("in the second step: %s", f.rechecked())
	}
	f.narrow(many(maxRechecked + 1)...)
	if f.end(f.r.Rechecked(), many(maxRechecked+1)...) || f.rechecked() != "all" {
		t.Errorf("with very many denied connections: %.100s", f.rechecked())
	}
	if !f.end(f.r.Rechecked()) || f.rechecked() != "" {
		t.Errorf("in the end: %.100s", f.rechecked())
	}
}

// TestLimitRecheck has addresses whose time passes, or does not count.
func TestLimitRecheck(t *testing.T) {
	f := newRecheckFixture(t)
	f.narrow("10.0.0.1")
	f.r.LimitRecheck(false)
	f.now = f.now.Add(2 * time.Hour)
	f.finish()
	if f.rechecked() != "10.0.0.1" || !f.r.Due().IsZero() {
		t.Errorf("without a limit: %s, due %s", f.rechecked(), f.r.Due())
	}
	f.r.LimitRecheck(true)
	if !f.r.Pending() {
		t.Error("not pending with a limit that has passed")
	}
	f.finish()
	if f.rechecked() != "" {
		t.Errorf("with a limit: %s", f.rechecked())
	}
}
