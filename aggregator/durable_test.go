package aggregator_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/aggregatortest"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
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
		if _, err := c.Apply(ctx, f); err != nil {
			t.Fatal(err)
		}
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
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	legacyState(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "durable", "tester", "broken.pb"), []byte("\xff\xff"), 0o600); err != nil {
		t.Fatal(err)
	}

	k = &aggregatortest.Kernel{}
	d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	wantElements(t, k, "10.0.0.2")
	if got := k.Rules(demo, "source"); !slices.Equal(got, []string{"ip saddr @blocked jump target"}) {
		t.Fatalf("rules %v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "durable", "tester", "broken.pb.damaged")); err != nil {
		t.Fatal(err)
	}
	list, err := d.Dial(t, "tester").List(ctx)
	if err != nil || len(list.GetFragments()) != 3 {
		t.Fatalf("fragments %v, error %v", list, err)
	}
	for _, f := range list.GetFragments() {
		if f.GetState() != weftv1.State_STATE_COMMITTED || f.GetLifetime() != weftv1.Lifetime_LIFETIME_DURABLE {
			t.Errorf("fragment %v", f)
		}
	}
}

func TestDurableNeedsStateDirectory(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	f := blocklist("list", "10.0.0.1")
	f.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
	_, err := d.Dial(t, "tester").Apply(aggregatortest.Context(t), f)
	rejection(t, err, weftv1.Reason_REASON_INVALID)
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
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	aggregatortest.Eventually(t, "the fragment is gone", func() bool { return k.String() == "" })
}
