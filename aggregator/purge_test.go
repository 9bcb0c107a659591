package aggregator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// sticky returns a fragment that sends each client of 10.96.0.1 to one backend and
// remembers to which.
func sticky(backends ...string) *weftv1.Fragment {
	table := &weftv1.Table{
		Family: "ip", Name: "demo",
		Maps: []*weftv1.Set{{
			Name: "affinity", Typeof: "ip saddr : ip daddr . th dport", Flags: []string{"dynamic", "timeout"}, Size: 65536,
			Role: weftv1.MapRole_MAP_ROLE_AFFINITY,
		}},
	}
	var picks []string
	for i, b := range backends {
		name := "remember-" + strings.ReplaceAll(b, ".", "-")
		picks = append(picks, fmt.Sprintf("%d : goto %s", i, name))
		table.Chains = append(table.Chains, &weftv1.Chain{Name: name, Rules: []*weftv1.Rule{
			{Text: "update @affinity { ip saddr timeout 3h : " + b + " . 8080 }"},
			{Text: "meta l4proto { tcp, udp } dnat to ip saddr map @affinity"},
		}})
	}
	pick := &weftv1.Chain{Name: "pick"}
	if len(picks) > 0 {
		pick.Rules = []*weftv1.Rule{{Text: fmt.Sprintf("numgen inc mod %d vmap { %s }", len(picks), strings.Join(picks, ", "))}}
	}
	table.Chains = append(table.Chains, pick, &weftv1.Chain{
		Name: "output", Type: "nat", Hook: "output", Priority: "-100", Rules: []*weftv1.Rule{{Text: "ip daddr 10.96.0.1 udp dport 53 goto pick"}},
	})
	return &weftv1.Fragment{Name: "sticky", Tables: []*weftv1.Table{table}}
}

func wantAffinity(t *testing.T, k *aggregatortest.Kernel, want ...string) {
	t.Helper()
	got := k.Elements(demo, "affinity")
	aggregatortest.Eventually(t, fmt.Sprintf("the entries are %q", want), func() bool {
		got = k.Elements(demo, "affinity")
		return slices.Equal(got, want)
	})
}

// packets has clients reach backends, as "client backend".
func packetsFrom(t *testing.T, k *aggregatortest.Kernel, pairs ...string) {
	t.Helper()
	for _, p := range pairs {
		client, backend, _ := strings.Cut(p, " ")
		must(t, k.Packet(demo, "affinity", client, backend+" . 8080"))
	}
}

// TestPurgeOfAffinityEntries removes one backend of two, and then the other.
//
// Behaviour: 81.
func TestPurgeOfAffinityEntries(t *testing.T) {
	k := &aggregatortest.Kernel{}
	var looks atomic.Int32
	k.RefuseDump = func() error { looks.Add(1); return nil }
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Retry: time.Hour}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	for _, f := range []*weftv1.Fragment{sticky("10.1.0.1", "10.1.0.2"), blocklist("other", "10.0.0.1")} {
		mustApply(t, c, f)
	}
	packetsFrom(t, k, "10.0.0.1 10.1.0.1", "10.0.0.2 10.1.0.2", "10.0.0.3 10.1.0.1")
	mustApply(t, c, sticky("10.1.0.1", "10.1.0.2", "10.1.0.3"))
	mustApply(t, c, blocklist("other", "10.0.0.2"))
	// A call that has gone through says that the writer is past the last commit.
	if _, err := d.Aggregator.ListTables(ctx, aggregator.Reader{All: true}); err != nil || looks.Load() != 0 {
		t.Fatalf("the map was read %d times (%v), though no rule went", looks.Load(), err)
	}
	mustApply(t, c, sticky("10.1.0.2", "10.1.0.3"))
	wantAffinity(t, k, "10.0.0.2 : 10.1.0.2 . 8080")
	mustApply(t, c, sticky())
	wantAffinity(t, k)
	if _, err := d.Aggregator.ListTables(ctx, aggregator.Reader{All: true}); err != nil || looks.Load() != 2 {
		t.Fatalf("the map was read %d times (%v), want twice", looks.Load(), err)
	}
}

// TestAffinitySurvivesRestarts stops the daemon, and starts it again with and
// without its record: no entry goes but those that no rule makes.
//
// Behaviour: 80, 81.
func TestAffinitySurvivesRestarts(t *testing.T) {
	k := &aggregatortest.Kernel{}
	cfg := aggregator.Config{Kernel: k, StateDir: t.TempDir(), Retry: 5 * time.Millisecond}
	run := func(f *weftv1.Fragment, want ...string) {
		t.Helper()
		d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
		if f != nil {
			mustApply(t, d.Dial(t, "tester"), f)
		}
		wantAffinity(t, k, want...)
		must(t, d.Stop())
	}
	run(sticky("10.1.0.1", "10.1.0.2"))
	packetsFrom(t, k, "10.0.0.1 10.1.0.1", "10.0.0.2 10.1.0.2")
	both := []string{"10.0.0.1 : 10.1.0.1 . 8080", "10.0.0.2 : 10.1.0.2 . 8080"}
	run(nil, both...)
	run(sticky("10.1.0.1", "10.1.0.2"), both...)

	// The daemon dies between a commit and the removal: an entry is left that no
	// rule makes.
	packetsFrom(t, k, "10.0.0.9 10.1.0.9")
	run(nil, both...)

	cfg.StateDir = ""
	packetsFrom(t, k, "10.0.0.9 10.1.0.9")
	run(nil, append(both, "10.0.0.9 : 10.1.0.9 . 8080")...)
	run(sticky("10.1.0.1", "10.1.0.2"), both...)
	run(sticky("10.1.0.2"), both[1])
}

// TestAffinityMapsOnTheWire has them come back from Get and from the state
// directory, stay over patches, and be refused where packets cannot fill them.
func TestAffinityMapsOnTheWire(t *testing.T) {
	dir := t.TempDir()
	ctx := aggregatortest.Context(t)
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}})
	f := sticky("10.1.0.1")
	f.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
	c := d.Dial(t, "tester")
	s := session(t, c, func(string) *weftv1.Fragment { return f })
	if _, err := s.Put(ctx, f); err != nil {
		t.Fatal(err)
	}
	table := func(p *weftv1.TablePatch) *weftv1.Patch {
		p.Family, p.Name = "ip", "demo"
		return &weftv1.Patch{Fragment: "sticky", Tables: []*weftv1.TablePatch{p}}
	}
	second := &weftv1.Set{Name: "second", Type: "ipv4_addr : ipv4_addr", Flags: []string{"dynamic"}, Size: 9, Role: weftv1.MapRole_MAP_ROLE_AFFINITY}
	if _, err := s.Patch(ctx, table(&weftv1.TablePatch{PutMaps: []*weftv1.Set{second}})); err != nil {
		t.Fatal(err)
	}
	check := func(d *aggregatortest.Daemon, want ...string) {
		t.Helper()
		got, err := d.Dial(t, "tester").Get(ctx, "", "sticky")
		must(t, err)
		var names []string
		for _, m := range got.GetFragment().GetTables()[0].GetMaps() {
			if m.GetRole() == weftv1.MapRole_MAP_ROLE_AFFINITY {
				names = append(names, m.GetName())
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Fatalf("affinity maps %q: want %q", names, want)
		}
	}
	check(d, "affinity", "second")
	if _, err := s.Patch(ctx, table(&weftv1.TablePatch{DeleteSets: []string{"second"}})); err != nil {
		t.Fatal(err)
	}
	check(d, "affinity")
	// A patch declares a map as a snapshot does: without the role it has none.
	plain := proto.CloneOf(second)
	plain.Role = weftv1.MapRole_MAP_ROLE_UNSPECIFIED
	for _, m := range []*weftv1.Set{second, plain} {
		if _, err := s.Patch(ctx, table(&weftv1.TablePatch{PutMaps: []*weftv1.Set{m}})); err != nil {
			t.Fatal(err)
		}
	}
	check(d, "affinity")
	if _, err := s.Patch(ctx, table(&weftv1.TablePatch{DeleteSets: []string{"second"}})); err != nil {
		t.Fatal(err)
	}
	second.Flags = []string{"timeout"}
	_, err := c.Apply(ctx, &weftv1.Fragment{Name: "bad", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Maps: []*weftv1.Set{second},
	}}})
	if r := rejection(t, err, weftv1.Violation_REASON_INVALID); !strings.Contains(r.Error(), "map ip demo second") || !strings.Contains(r.Error(), "flags dynamic") {
		t.Errorf("rejection of a map without flags dynamic: %v", r)
	}
	must(t, errors.Join(s.Close(), d.Stop()))
	check(aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir}}), "affinity")
}
