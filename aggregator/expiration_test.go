package aggregator_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

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
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// push returns the outcome of an update: its reason if it is rejected.
func (b *bubble) push(s *aggregator.Session, req *weftv1.PublishRequest) weftv1.Violation_Reason {
	b.t.Helper()
	c, err := s.Push(req)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.reason((<-c).Err)
}

func (b *bubble) reason(err error) weftv1.Violation_Reason {
	b.t.Helper()
	if err == nil {
		return weftv1.Violation_REASON_UNSPECIFIED
	}
	rejected, ok := err.(*aggregator.RejectedError) //nolint:errorlint // it is not wrapped
	if !ok {
		b.t.Fatal(err)
	}
	return rejected.Violations[0].GetReason()
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
			if r := b.push(s, snapshotOf(1, f)); r != 0 {
				t.Fatal(r)
			}
		}
		list, _ := b.List()
		if at := list[0].GetExpireTime(); list[0].GetFragment().GetName() != "durable" || !at.AsTime().Equal(start.Add(3*time.Second)) {
			t.Errorf("status %v", list[0])
		}
		// A patch keeps the expiration.
		if r := b.push(s, patchOf(2, patch("sticky", []string{"10.0.0.9"}, nil))); r != 0 {
			t.Fatal(r)
		}
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
			if got := b.names(); got != step.left {
				t.Errorf("after %v: %s, want %s", step.at, got, step.left)
			}
		}
		wantElements(t, k, "10.0.0.4")
		for _, want := range []string{"sticky", "session", "durable"} {
			if e := <-events; e.GetFragment().GetName() != want || e.GetRevision() == 0 || !e.GetExpireTime().IsValid() {
				t.Errorf("event %v, want %s", e, want)
			}
		}
		if r := b.push(s, patchOf(3, patch("session", []string{"10.0.0.9"}, nil))); r != weftv1.Violation_REASON_EXPIRED {
			t.Errorf("patch of an expired fragment: %v", r)
		}
		if r := b.push(s, snapshotOf(4, blocklist("session", "10.0.0.2"))); r != 0 {
			t.Error(r)
		}
		if r := b.push(s, patchOf(5, patch("session", []string{"10.0.0.9"}, nil))); r != 0 {
			t.Error(r)
		}
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
			if r := b.push(s, snapshotOf(1, f)); r != 0 {
				t.Fatal(r)
			}
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
			if r := b.push(s, snapshotOf(1, f)); r != 0 {
				t.Fatal(r)
			}
		}
		<-time.After(time.Minute)
		list, _ := b.List()
		if b.names() != "source target" || list[1].GetViolations()[0].GetReason() != weftv1.Violation_REASON_REFERENCE {
			t.Fatalf("fragments %v", list)
		}
		if r := b.push(s, snapshotOf(2, &weftv1.Fragment{Name: "source"})); r != 0 {
			t.Fatal(r)
		}
		synctest.Wait()
		if got := b.names(); got != "" {
			t.Errorf("fragments %s", got)
		}
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
					if r := b.push(s, snapshotOf(1, f)); r != 0 {
						t.Fatal(r)
					}
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
				if got := b.names(); got != want {
					t.Errorf("after the restart: %s, want %s", got, want)
				}
				if now, _ := b.List(); !now[0].GetExpireTime().AsTime().Equal(list[1].GetExpireTime().AsTime()) {
					t.Errorf("expire_time %v, want that of before the restart, %v", now[0].GetExpireTime(), list[1].GetExpireTime())
				}
				<-time.After(time.Hour)
				synctest.Wait()
				if got := b.names(); got != strings.TrimSpace(strings.NewReplacer("late", "", "sticky", "", "  ", " ").Replace(want)) {
					t.Errorf("an hour later: %s", got)
				}
				b.stop()
				if c, _ := state(t, dir); len(c.Fragments) != 0 {
					t.Errorf("state directory has %v", c.Fragments)
				}
			})
		})
	}
}

// TestExpirationIsChecked rejects what cannot be an expiration.
func TestExpirationIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := runInBubble(t, aggregator.Config{Kernel: &aggregatortest.Kernel{}})
		defer b.stop()
		at := func(ts *timestamppb.Timestamp) *weftv1.Fragment {
			f := blocklist("list")
			f.Expiration = &weftv1.Fragment_ExpireTime{ExpireTime: ts}
			return f
		}
		for _, test := range []struct {
			name   string
			f      *weftv1.Fragment
			reason weftv1.Violation_Reason
		}{
			{"good", at(timestamppb.New(time.Now().Add(time.Second))), 0},
			{"zero", living(blocklist("list"), 0), weftv1.Violation_REASON_INVALID},
			{"negative", living(blocklist("list"), -time.Second), weftv1.Violation_REASON_INVALID},
			{"far", living(blocklist("list"), math.MaxInt64), weftv1.Violation_REASON_INVALID},
			{"past", at(timestamppb.New(time.Now().Add(-time.Second))), weftv1.Violation_REASON_EXPIRED},
			{"now", at(timestamppb.Now()), weftv1.Violation_REASON_EXPIRED},
			{"far time", at(timestamppb.New(time.Now().AddDate(11, 0, 0))), weftv1.Violation_REASON_INVALID},
			{"malformed time", at(&timestamppb.Timestamp{Nanos: -1}), weftv1.Violation_REASON_INVALID},
			{"no time", at(nil), weftv1.Violation_REASON_INVALID},
			{"malformed duration", &weftv1.Fragment{Name: "list", Expiration: &weftv1.Fragment_Ttl{Ttl: &durationpb.Duration{Seconds: 1, Nanos: -1}}}, weftv1.Violation_REASON_INVALID},
		} {
			_, err := b.Apply(t.Context(), "tester", test.f)
			if got := b.reason(err); got != test.reason {
				t.Errorf("%s: %v, want %v (%v)", test.name, got, test.reason, err)
			}
		}
	})
}
