package aggregator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestDurableSurvivesReboot starts again with an empty kernel.
func TestDurableSurvivesReboot(t *testing.T) {
	dir := t.TempDir()
	ctx := aggregatortest.Context(t)
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	c := d.Dial(t, "tester")
	durable := func(f *weftv1.Fragment) *weftv1.Fragment {
		f.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
		return f
	}
	chains := func(name string, chains ...*weftv1.Chain) *weftv1.Fragment {
		return durable(&weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Chains: chains}}})
	}
	// "a" needs "z", and comes first by name.
	for _, f := range []*weftv1.Fragment{
		durable(blocklist("list", "10.0.0.1")),
		chains("z", &weftv1.Chain{Name: "target", Rules: []*weftv1.Rule{{Text: "drop"}}}),
		chains("a", &weftv1.Chain{Name: "source", Rules: []*weftv1.Rule{{Text: "ip saddr @blocked jump target", Comment: "why"}}}),
		durable(blocklist("gone", "10.0.0.7")),
		blocklist("sticky", "10.0.0.8"),
	} {
		mustApply(t, c, f)
	}
	s := session(t, c, func(string) *weftv1.Fragment { return durable(blocklist("list", "10.0.0.1")) })
	if _, err := s.Put(ctx, durable(blocklist("list", "10.0.0.1"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Patch(ctx, patch("list", []string{"10.0.0.2"}, []string{"10.0.0.1"})); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(ctx, "", "gone"); err != nil {
		t.Fatal(err)
	}
	must(t, s.Close())
	must(t, d.Stop())
	k = &aggregatortest.Kernel{}
	d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	wantElements(t, k, "10.0.0.2")
	if got := k.Rules(demo, "source"); !slices.Equal(got, []string{"ip saddr @blocked jump target"}) {
		t.Fatalf("rules %v", got)
	}
	list, err := d.Dial(t, "tester").List(ctx)
	if err != nil || len(list.GetFragments()) != 3 {
		t.Fatalf("fragments %v, error %v", list, err)
	}
	for _, f := range list.GetFragments() {
		if f.GetState() != weftv1.FragmentStatus_STATE_COMMITTED || f.GetLifetime() != weftv1.Lifetime_LIFETIME_DURABLE {
			t.Errorf("fragment %v", f)
		}
	}
}

func TestDurableNeedsStateDirectory(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	f := blocklist("list", "10.0.0.1")
	f.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
	_, err := d.Dial(t, "tester").Apply(aggregatortest.Context(t), f)
	rejection(t, err, weftv1.Violation_REASON_INVALID)
}

// TestSessionFragmentsGoAfterRestart restarts under a session that does not
// come back.
func TestSessionFragmentsGoAfterRestart(t *testing.T) {
	k := &aggregatortest.Kernel{}
	cfg := aggregator.Config{Kernel: k, StateDir: t.TempDir(), SessionGrace: 50 * time.Millisecond}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	s := raw(t, d, "tester")
	f := blocklist("brief", "10.0.0.1")
	f.Lifetime = weftv1.Lifetime_LIFETIME_SESSION
	wantCommitted(t, exchange(t, s, snapshotOf(1, f)))
	must(t, d.Stop())
	aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	aggregatortest.Eventually(t, "the fragment is gone", k.Empty)
}

// TestDurablesAreRestoredInOneCommit reboots with many fragments.
func TestDurablesAreRestoredInOneCommit(t *testing.T) {
	dir, k := t.TempDir(), &aggregatortest.Kernel{}
	storeMany(t, dir, 50)
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	if fragments, _ := d.Aggregator.List(); len(fragments) != 50 || len(k.Commits()) != 1 {
		t.Fatalf("%d fragments are restored in %d commits", len(fragments), len(k.Commits()))
	}
}

// TestRevisionsGrowWhenTheClockGoesBack restarts an hour earlier, after commits
// that change no record.
func TestRevisionsGrowWhenTheClockGoesBack(t *testing.T) {
	dir, k, ctx := t.TempDir(), &aggregatortest.Kernel{}, aggregatortest.Context(t)
	start := func(now func() time.Time) *aggregatortest.Daemon {
		return aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Now: now}})
	}
	d := start(nil)
	var last uint64
	for i := range 5 {
		var err error
		if last, err = d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1", fmt.Sprintf("10.0.1.%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	must(t, d.Stop())
	d = start(func() time.Time { return time.Now().Add(-time.Hour) })
	next, err := d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.9"))
	if err != nil || next <= last {
		t.Fatalf("revision %d after %d, error %v", next, last, err)
	}
}

// TestStoredIsWhatGetReturns patches a durable fragment in every way, and compares
// what is stored with what Get returns.
func TestStoredIsWhatGetReturns(t *testing.T) {
	dir := t.TempDir()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}})
	s := raw(t, d, "tester")
	wantCommitted(t, exchange(t, s, snapshotOf(1, durable(rich()))))
	same := func(what string) {
		t.Helper()
		answer, err := d.Dial(t, "tester").Get(aggregatortest.Context(t), "", rich().GetName())
		must(t, err)
		want := answer.GetFragment()
		if got := stored(t, dir, rich().GetName()); !proto.Equal(inOrder(got), inOrder(want)) {
			t.Errorf("%s: stored is\n%v\nwant\n%v", what, got, want)
		}
	}
	same("snapshot")
	for i, change := range []*weftv1.TablePatch{
		{Elements: []*weftv1.ElementPatch{{Set: "nets", Add: elements("10.7.0.0/24", "10.8.0.1", "10.9.0.1-10.9.0.9"), Remove: []string{"10.1.0.0/16"}}}},
		{Elements: []*weftv1.ElementPatch{{Set: "nets", Remove: []string{"10.9.0.1-10.9.0.9", "10.8.0.1/32"}}}},
		{PutSets: []*weftv1.Set{{Name: "more", Type: "ifname", Comment: "why", Elements: elements("eth0")}}},
		{PutChains: []*weftv1.Chain{{Name: "web", Rules: []*weftv1.Rule{{Text: "iifname @more accept"}}}}},
		{PutObjects: []*weftv1.Object{{Kind: "counter", Name: "hits"}}},
		{DeleteObjects: []*weftv1.ObjectReference{{Kind: "counter", Name: "hits"}}, PutChains: []*weftv1.Chain{{Name: "web"}}, DeleteSets: []string{"more"}},
	} {
		change.Family, change.Name = "ip", "demo"
		wantCommitted(t, exchange(t, s, patchOf(uint64(i+2), &weftv1.Patch{Fragment: rich().GetName(), Tables: []*weftv1.TablePatch{change}}))) //nolint:gosec // a count
		same(fmt.Sprintf("patch %d", i))
	}
}

// inOrder returns a fragment whose sets, maps, chains and elements are in the order
// of their names.
func inOrder(f *weftv1.Fragment) *weftv1.Fragment {
	f = proto.CloneOf(f)
	for _, t := range f.GetTables() {
		slices.SortFunc(t.GetChains(), func(a, b *weftv1.Chain) int { return strings.Compare(a.GetName(), b.GetName()) })
		for _, sets := range [][]*weftv1.Set{t.GetSets(), t.GetMaps()} {
			slices.SortFunc(sets, func(a, b *weftv1.Set) int { return strings.Compare(a.GetName(), b.GetName()) })
			for _, s := range sets {
				slices.SortFunc(s.GetElements(), func(a, b *weftv1.Element) int { return strings.Compare(a.GetKey(), b.GetKey()) })
			}
		}
	}
	return f
}
