package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

// TestDurableSurvivesReboot starts again with an empty kernel.
func TestDurableSurvivesReboot(t *testing.T) {
	dir := t.TempDir()
	ctx := aggregatortest.Context(t)
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	c := d.Dial(t, "tester")
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
	must(t, errorOf(s.Put(ctx, durable(blocklist("list", "10.0.0.1")))))
	must(t, errorOf(s.Patch(ctx, patch("list", []string{"10.0.0.2"}, []string{"10.0.0.1"}))))
	must(t, errorOf(c.Delete(ctx, "", "gone")))
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
	_, d := inMemory(t)
	f := blocklist("list", "10.0.0.1")
	f.Lifetime = weftv1.Lifetime_LIFETIME_DURABLE
	rejection(t, errorOf(d.Dial(t, "tester").Apply(aggregatortest.Context(t), f)), weftv1.Violation_REASON_INVALID)
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
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir, Rate: 1e6}})
	for i := range 50 {
		f := durable(blocklist(fmt.Sprintf("f%d", i), "10.0.0.1"))
		f.Tables[0].Name = f.GetName()
		applyAs(t, d, "tester", f)
	}
	must(t, d.Stop())
	d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
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

// living gives a fragment a time to live.
func living(f *weftv1.Fragment, ttl time.Duration) *weftv1.Fragment {
	f.Expiration = &weftv1.Fragment_Ttl{Ttl: durationpb.New(ttl)}
	return f
}

func lasting(f *weftv1.Fragment, l weftv1.Lifetime) *weftv1.Fragment {
	f.Lifetime = l
	return f
}

// bubble is an aggregator in a bubble of testing/synctest.
type bubble struct {
	*aggregator.Aggregator
	t    *testing.T
	stop func()
}

func runInBubble(t *testing.T, cfg aggregator.Config) *bubble {
	t.Helper()
	a, err := aggregator.New(cfg)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	<-a.Ready()
	b := &bubble{Aggregator: a, t: t}
	b.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return b
}

func (b *bubble) session() *aggregator.Session {
	b.t.Helper()
	s, err := b.Session("tester", 1, 0)
	must(b.t, err)
	return s
}

// push returns the outcome of an update.
func (b *bubble) push(s *aggregator.Session, req *weftv1.PublishRequest) error {
	b.t.Helper()
	c, err := s.Push(req)
	must(b.t, err)
	return (<-c).Err
}

func (b *bubble) names() string {
	var names []string
	list, _ := b.List()
	for _, f := range list {
		names = append(names, f.GetFragment().GetName())
	}
	return strings.Join(names, " ")
}

// TestFragmentsExpire has fragments of all lifetimes go at their time, and not
// before.
func TestFragmentsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &aggregatortest.Kernel{}
		b := runInBubble(t, aggregator.Config{Kernel: k, StateDir: t.TempDir()})
		defer b.stop()
		events := make(chan *weftv1.Expired, 16)
		watching, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			_ = b.Watch(watching, func() error { return nil }, func(e *weftv1.WatchResponse) error {
				if x := e.GetExpired(); x != nil {
					events <- x
				}
				return nil
			})
		}()
		s, start := b.session(), time.Now()
		for _, f := range []*weftv1.Fragment{
			living(blocklist("sticky", "10.0.0.1"), time.Second),
			lasting(living(blocklist("session", "10.0.0.2"), 2*time.Second), weftv1.Lifetime_LIFETIME_SESSION),
			lasting(living(blocklist("durable", "10.0.0.3"), 3*time.Second), weftv1.Lifetime_LIFETIME_DURABLE),
			blocklist("stays", "10.0.0.4"),
		} {
			must(t, b.push(s, snapshotOf(1, f)))
		}
		list, _ := b.List()
		if at := list[0].GetExpireTime(); list[0].GetFragment().GetName() != "durable" || !at.AsTime().Equal(start.Add(3*time.Second)) {
			t.Errorf("status %v", list[0])
		}
		// A patch keeps the expiration.
		must(t, b.push(s, patchOf(2, patch("sticky", []string{"10.0.0.9"}, nil))))
		for _, step := range []struct {
			at   time.Duration
			left string
		}{
			{999 * time.Millisecond, "durable session stays sticky"},
			{1100 * time.Millisecond, "durable session stays"},
			{2100 * time.Millisecond, "durable stays"},
			{3100 * time.Millisecond, "stays"},
		} {
			<-time.After(step.at - time.Since(start))
			synctest.Wait()
			same(t, fmt.Sprintf("fragments after %v", step.at), b.names(), step.left)
		}
		wantElements(t, k, "10.0.0.4")
		for _, want := range []string{"sticky", "session", "durable"} {
			if e := <-events; e.GetFragment().GetName() != want || e.GetRevision() == 0 || !e.GetExpireTime().IsValid() {
				t.Errorf("event %v, want %s", e, want)
			}
		}
		expired := blocklist("late")
		expired.Expiration = &weftv1.Fragment_ExpireTime{ExpireTime: timestamppb.Now()}
		for _, req := range []*weftv1.PublishRequest{patchOf(3, patch("session", []string{"10.0.0.9"}, nil)), snapshotOf(3, expired)} {
			var r *aggregator.RejectedError
			if err := b.push(s, req); !errors.As(err, &r) || r.Violations[0].GetReason() != weftv1.Violation_REASON_EXPIRED {
				t.Errorf("update of an expired fragment: %v", err)
			}
		}
		must(t, b.push(s, snapshotOf(4, blocklist("session", "10.0.0.2"))))
		must(t, b.push(s, patchOf(5, patch("session", []string{"10.0.0.9"}, nil))))
	})
}

// TestSnapshotReplacesExpiration renews an expiration, and takes it away.
func TestSnapshotReplacesExpiration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := runInBubble(t, aggregator.Config{Kernel: &aggregatortest.Kernel{}})
		defer b.stop()
		s := b.session()
		for _, f := range []*weftv1.Fragment{
			living(blocklist("sooner", "10.0.0.1"), time.Hour), living(blocklist("sooner", "10.0.0.1"), time.Second),
			living(blocklist("later", "10.0.0.2"), time.Second), living(blocklist("later", "10.0.0.2"), time.Hour),
			living(blocklist("never", "10.0.0.3"), time.Second), blocklist("never", "10.0.0.3"),
			living(blocklist("withdrawn", "10.0.0.4"), time.Second), {Name: "withdrawn"}, blocklist("withdrawn", "10.0.0.4"),
		} {
			must(t, b.push(s, snapshotOf(1, f)))
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if got, want := b.names(), "later never withdrawn"; got != want {
			t.Errorf("after a minute: %s, want %s", got, want)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if got, want := b.names(), "never withdrawn"; got != want {
			t.Errorf("after an hour: %s, want %s", got, want)
		}
	})
}

// TestExpiredFragmentInUse expires a fragment that another one refers to: it goes
// with the reference.
func TestExpiredFragmentInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := runInBubble(t, aggregator.Config{Kernel: &aggregatortest.Kernel{}})
		defer b.stop()
		s := b.session()
		chain := func(name string, c *weftv1.Chain) *weftv1.Fragment {
			return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Chains: []*weftv1.Chain{c}}}}
		}
		for _, f := range []*weftv1.Fragment{
			living(chain("target", &weftv1.Chain{Name: "target"}), time.Second),
			chain("source", &weftv1.Chain{Name: "source", Rules: []*weftv1.Rule{{Text: "jump target"}}}),
		} {
			must(t, b.push(s, snapshotOf(1, f)))
		}
		<-time.After(time.Minute)
		list, _ := b.List()
		if b.names() != "source target" || list[1].GetViolations()[0].GetReason() != weftv1.Violation_REASON_REFERENCE {
			t.Fatalf("fragments %v", list)
		}
		must(t, b.push(s, snapshotOf(2, &weftv1.Fragment{Name: "source"})))
		synctest.Wait()
		same(t, "fragments", b.names(), "")
	})
}

// TestExpirationSurvivesRestarts restarts before and after the time, with the kernel
// as it was and with an empty one.
func TestExpirationSurvivesRestarts(t *testing.T) {
	for name, reboot := range map[string]bool{"restart": false, "reboot": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				k := &aggregatortest.Kernel{}
				again := func() *bubble {
					if reboot {
						k = &aggregatortest.Kernel{}
					}
					return runInBubble(t, aggregator.Config{Kernel: k, StateDir: dir})
				}
				b := again()
				s := b.session()
				for _, f := range []*weftv1.Fragment{
					lasting(living(blocklist("early", "10.0.0.1"), time.Minute), weftv1.Lifetime_LIFETIME_DURABLE),
					lasting(living(blocklist("late", "10.0.0.2"), time.Hour), weftv1.Lifetime_LIFETIME_DURABLE),
					living(blocklist("sticky", "10.0.0.3"), time.Hour),
					blocklist("stays", "10.0.0.4"),
				} {
					must(t, b.push(s, snapshotOf(1, f)))
				}
				list, _ := b.List()
				b.stop()
				<-time.After(2 * time.Minute)
				b = again()
				synctest.Wait()
				for _, commit := range k.Commits() {
					for _, op := range commit {
						if reboot && strings.Contains(kernel.Describe(op), "10.0.0.1") {
							t.Errorf("the expired fragment came back: %s", kernel.Describe(op))
						}
					}
				}
				want := "late stays sticky"
				if reboot {
					want = "late"
				}
				same(t, "fragments after the restart", b.names(), want)
				if now, _ := b.List(); !now[0].GetExpireTime().AsTime().Equal(list[1].GetExpireTime().AsTime()) {
					t.Errorf("expire_time %v, want that of before the restart, %v", now[0].GetExpireTime(), list[1].GetExpireTime())
				}
				<-time.After(time.Hour)
				synctest.Wait()
				same(t, "fragments an hour later", b.names(), strings.TrimSpace(strings.NewReplacer("late", "", "sticky", "", "  ", " ").Replace(want)))
				b.stop()
				if c, _ := state(t, dir); len(c.Fragments) != 0 {
					t.Errorf("state directory has %v", c.Fragments)
				}
			})
		})
	}
}
