package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// demo is the table of these tests.
var demo = nft.TableID{Family: nft.FamilyIP, Name: "demo"}

// blocklist returns a fragment with a set and a chain that drops its members.
func blocklist(name string, members ...string) *weftv1.Fragment {
	return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo",
		Sets: []*weftv1.Set{{Name: "blocked", Type: "ipv4_addr", Elements: elements(members...)}},
		Chains: []*weftv1.Chain{{
			Name: "input", Type: "filter", Hook: "input", Priority: "filter",
			Rules: []*weftv1.Rule{{Text: "ip saddr @blocked counter drop"}},
		}},
	}}}
}

func elements(keys ...string) []*weftv1.Element {
	var out []*weftv1.Element
	for _, k := range keys {
		out = append(out, &weftv1.Element{Key: k})
	}
	return out
}

func patch(fragment string, add, remove []string) *weftv1.Patch {
	return &weftv1.Patch{Fragment: fragment, Tables: []*weftv1.TablePatch{{
		Family: "ip", Name: "demo",
		Elements: []*weftv1.ElementPatch{{Set: "blocked", Add: elements(add...), Remove: remove}},
	}}}
}

// session starts a session whose snapshots are what Put was given last, with
// the patches that were made to current.
func session(t *testing.T, c *client.Client, snapshot func(string) *weftv1.Fragment) *client.Session {
	t.Helper()
	s := c.Session(client.SessionConfig{Snapshot: snapshot})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func rejection(t *testing.T, err error, reason weftv1.Violation_Reason) *client.RejectedError {
	t.Helper()
	var r *client.RejectedError
	if !errors.As(err, &r) {
		t.Fatalf("error is %v: want a rejection", err)
	}
	if !r.Has(reason) {
		t.Fatalf("rejection is %v (%v): want reason %v", r, r.Violations, reason)
	}
	return r
}

func wantElements(t *testing.T, k *aggregatortest.Kernel, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, k.Elements(demo, "blocked")); diff != "" {
		t.Fatalf("elements (-want +got):\n%s", diff)
	}
}

func TestApplyPatchAndDelete(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	first, err := c.Apply(ctx, blocklist("list", "10.0.0.1", "10.0.0.2"))
	must(t, err)
	wantElements(t, k, "10.0.0.1", "10.0.0.2")
	handles := k.Handles(demo, "input")

	again, err := c.Apply(ctx, blocklist("list", "10.0.0.2", "10.0.0.1"))
	if err != nil || again != first || len(k.Commits()) != 1 {
		t.Fatalf("unchanged fragment: revision %d, error %v, %d commits: want revision %d and one commit", again, err, len(k.Commits()), first)
	}

	s := session(t, c, func(string) *weftv1.Fragment { return blocklist("list", "10.0.0.1") })
	if _, err := s.Put(ctx, blocklist("list", "10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	rev, err := s.Patch(ctx, patch("list", []string{"10.0.0.9"}, []string{"10.0.0.1"}))
	if err != nil || rev <= first {
		t.Fatalf("patch: revision %d, error %v", rev, err)
	}
	wantElements(t, k, "10.0.0.9")
	if got := k.Handles(demo, "input"); !slices.Equal(got, handles) {
		t.Fatalf("rule handles %v became %v", handles, got)
	}
	got, err := c.Get(ctx, "", "list")
	must(t, err)
	if st := got.GetStatus(); st.GetRevision() != rev || st.GetElements() != 1 || st.GetRules() != 1 || st.GetState() != weftv1.FragmentStatus_STATE_COMMITTED {
		t.Fatalf("status %v", st)
	}
	table := got.GetFragment().GetTables()[0]
	if table.GetSets()[0].GetType() != "ipv4_addr" || table.GetSets()[0].GetElements()[0].GetKey() != "10.0.0.9" || table.GetChains()[0].GetPriority() != "filter" {
		t.Fatalf("content %v", table)
	}
	if _, err := c.Delete(ctx, "", "list"); err != nil {
		t.Fatal(err)
	}
	if got := k.String(); got != "" {
		t.Fatalf("kernel still holds %s", got)
	}
	if _, err := c.Delete(ctx, "", "list"); !errors.Is(err, client.ErrNotFound) {
		t.Fatalf("second delete: %v", err)
	}
	if _, err := c.Get(ctx, "", "list"); !errors.Is(err, client.ErrNotFound) {
		t.Fatalf("get of a deleted fragment: %v", err)
	}
}

func TestRejectionKeepsCommittedContent(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	mustApply(t, c, blocklist("list", "10.0.0.1"))
	bad := blocklist("list", "10.0.0.300", "10.0.0.7")
	bad.Tables[0].Chains[0].Rules = append(bad.Tables[0].Chains[0].Rules, &weftv1.Rule{Text: "ip saddr 10.0.0.1 tcp dprot 80 drop"})
	_, err := c.Apply(ctx, bad)
	r := rejection(t, err, weftv1.Violation_REASON_INVALID)
	if len(r.Violations) != 2 {
		t.Fatalf("violations %v: want both", r.Violations)
	}
	detail := fmt.Sprintf("%+v", r)
	for _, want := range []string{"rule ip demo input #2", "^", "element ip demo blocked { 10.0.0.300 }"} {
		if !strings.Contains(detail, want) {
			t.Fatalf("detail lacks %q:\n%s", want, detail)
		}
	}
	wantElements(t, k, "10.0.0.1")
	list, err := c.List(ctx)
	if err != nil || len(list.GetFragments()) != 1 || len(list.GetFragments()[0].GetViolations()) != 2 {
		t.Fatalf("list %v, error %v: want the violations in the status", list, err)
	}
}

// TestRestartAdoptsAndCommitsNothing has a publisher come back with what the kernel
// has already.
//
// Behaviour: 132.
func TestRestartAdoptsAndCommitsNothing(t *testing.T) {
	k := &aggregatortest.Kernel{}
	dir := t.TempDir()
	ctx := aggregatortest.Context(t)
	cfg := aggregator.Config{Kernel: k, StateDir: dir}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	before, err := d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1", "10.0.0.2"))
	must(t, err)
	must(t, d.Stop())
	d = aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	c := d.Dial(t, "tester")
	list, err := c.List(ctx)
	if err != nil || len(list.GetFragments()) != 1 {
		t.Fatalf("list %v, error %v", list, err)
	}
	if st := list.GetFragments()[0]; st.GetState() != weftv1.FragmentStatus_STATE_ADOPTED || st.GetElements() != 2 || list.GetRevision() < before {
		t.Fatalf("adopted status %v, revision %d after %d", st, list.GetRevision(), before)
	}
	mustApply(t, c, blocklist("list", "10.0.0.1", "10.0.0.2"))
	if n := len(k.Commits()); n != 1 {
		t.Fatalf("%d commits: the restart must not commit anything", n)
	}
	rev, err := c.Apply(ctx, blocklist("list", "10.0.0.2"))
	if err != nil || rev <= before {
		t.Fatalf("revision %d after %d, error %v", rev, before, err)
	}
	wantElements(t, k, "10.0.0.2")
}

func TestDriftIsRepairedAndTold(t *testing.T) {
	k := &aggregatortest.Kernel{}
	var later atomic.Int64
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{
		Kernel: k, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}})
	c := d.Dial(t, "tester")
	mustApply(t, c, blocklist("list", "10.0.0.1"))
	events := watch(t, d)
	if err := d.Aggregator.Drift(); err != nil {
		t.Errorf("drift before any change: %v", err)
	}
	k.Flush()
	aggregatortest.Eventually(t, "the element is back", func() bool { return len(k.Elements(demo, "blocked")) == 1 })
	events.until(t, "drift", func(e *weftv1.WatchResponse) bool { return e.GetDrift().GetRepaired().GetElementsAdded() == 1 })
	if got := k.Rules(demo, "input"); len(got) != 1 {
		t.Fatalf("rules %v", got)
	}
	if err := d.Aggregator.Drift(); err == nil || !strings.Contains(err.Error(), "another process changed the tables, which was repaired: ") {
		t.Errorf("drift after the repair: %v", err)
	}
	later.Store(int64(time.Hour))
	if err := d.Aggregator.Drift(); err != nil {
		t.Errorf("drift long after the repair: %v", err)
	}
}

func TestStandby(t *testing.T) {
	k := &aggregatortest.Kernel{}
	k.SetOwned(&kernel.OwnedError{Table: demo, PID: 1, Process: "weft"})
	a, err := aggregator.New(aggregator.Config{Kernel: k})
	must(t, err)
	var owned *kernel.OwnedError
	if err := a.Run(aggregatortest.Context(t)); !errors.As(err, &owned) {
		t.Fatalf("run: %v: want who owns the table", err)
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Standby: true, Retry: 1e6}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	aggregatortest.Eventually(t, "it stands by", func() bool {
		_, err := c.Apply(ctx, blocklist("list", "10.0.0.1"))
		return errors.Is(err, client.ErrUnavailable)
	})
	k.SetOwned(nil)
	<-d.Aggregator.Ready()
	mustApply(t, c, blocklist("list", "10.0.0.1"))
}

func TestStopDrains(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Rate: 0.01, Burst: 1}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	mustApply(t, c, blocklist("one", "10.0.0.1"))
	done := make(chan error, 1)
	go func() {
		_, err := c.Apply(ctx, blocklist("two", "10.0.0.2"))
		done <- err
	}()
	aggregatortest.Eventually(t, "the second waits for a token", func() bool { return d.Aggregator.Pending() == 1 })
	must(t, d.Stop())
	if err := <-done; err != nil {
		t.Fatalf("update that was pending at the stop: %v", err)
	}
	wantElements(t, k, "10.0.0.1", "10.0.0.2")
}

func TestLoadIsCoalesced(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Rate: 20, Burst: 1}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	s := session(t, c, func(string) *weftv1.Fragment { return blocklist("list") })
	if _, err := s.Put(ctx, blocklist("list")); err != nil {
		t.Fatal(err)
	}
	var pending []*client.Pending
	for i := range 200 {
		pending = append(pending, s.StartPatch(patch("list", []string{fmt.Sprintf("10.0.0.%d", i)}, nil)))
	}
	for _, p := range pending {
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(k.Elements(demo, "blocked")); n != 200 {
		t.Fatalf("%d elements: want 200", n)
	}
	if n := len(k.Commits()); n > 10 {
		t.Fatalf("%d commits for 200 patches", n)
	}
}

// eventLog collects what a watcher sees.
type eventLog struct {
	mu     sync.Mutex
	events []*weftv1.WatchResponse
}

func watch(t *testing.T, d *aggregatortest.Daemon) *eventLog {
	t.Helper()
	l := &eventLog{}
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Aggregator.Watch(ctx, func() error { close(started); return nil }, func(e *weftv1.WatchResponse) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, e)
			return nil
		})
	}()
	<-started
	t.Cleanup(func() { cancel(); <-done })
	return l
}

func (l *eventLog) until(t *testing.T, what string, match func(*weftv1.WatchResponse) bool) *weftv1.WatchResponse {
	t.Helper()
	var found *weftv1.WatchResponse
	aggregatortest.Eventually(t, what, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		i := slices.IndexFunc(l.events, match)
		if i >= 0 {
			found = l.events[i]
		}
		return i >= 0
	})
	return found
}
