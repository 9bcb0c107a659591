package client_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// reports collects what a session tells.
type reports struct {
	mu      sync.Mutex
	syncs   []error
	streams []error
}

func (r *reports) config(cfg client.SessionConfig) client.SessionConfig {
	cfg.OnSync = func(_ string, _ uint64, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.syncs = append(r.syncs, err)
	}
	cfg.OnStream = func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.streams = append(r.streams, err)
	}
	return cfg
}

// synced returns how many resyncs ended with the sentinel (nil: well).
func (r *reports) synced(sentinel error) int { return r.count(&r.syncs, sentinel) }

// streamed returns how often the stream was reported with the sentinel.
func (r *reports) streamed(sentinel error) int { return r.count(&r.streams, sentinel) }

func (r *reports) count(list *[]error, sentinel error) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, err := range *list {
		if errors.Is(err, sentinel) {
			n++
		}
	}
	return n
}

// TestRefusedResyncIsTriedAgain has another publisher's fragment in the way
// when the session comes back: only the session can see that it goes.
func TestRefusedResyncIsTriedAgain(t *testing.T) {
	for _, keep := range []bool{false, true} {
		f, ctx, p := newFake(t), aggregatortest.Context(t), newPublisher("10.0.0.1")
		r, cfg := &reports{}, client.SessionConfig{}
		if !keep {
			cfg.Snapshot = p.fragment
		}
		s := startSession(t, f.dial(t), r.config(cfg))
		must(t, errorOf(s.Put(ctx, p.fragment("list"))))
		f.behave(nil, func(string, *weftv1.PublishRequest) verdict {
			return verdict{reject: weftv1.Violation_REASON_PERMISSION}
		})
		f.reboot(t)
		aggregatortest.Eventually(t, "the refused resync is tried again and reported", func() bool { return r.synced(client.ErrPermission) >= 2 })
		f.behave(nil, nil)
		aggregatortest.Eventually(t, "the fragment is back", func() bool { return slices.Equal(f.keys("list"), p.keys()) })
		aggregatortest.Eventually(t, "the resync is reported", func() bool { return r.synced(nil) > 0 })
		if r.streamed(nil) < 2 || r.streamed(client.ErrUnavailable) < 1 {
			t.Fatalf("stream reports %v", r.streams)
		}
	}
}

// TestPatchAfterRefusedWithdraw withdraws a fragment that something refers to:
// it is still there, and can be changed.
func TestPatchAfterRefusedWithdraw(t *testing.T) {
	f, ctx, p := newFake(t), aggregatortest.Context(t), newPublisher("10.0.0.1")
	s := startSession(t, f.dial(t), p.config())
	must(t, errorOf(s.Put(ctx, p.fragment("list"))))
	f.behave(nil, func(_ string, req *weftv1.PublishRequest) verdict {
		if req.GetWithdraw() != "" {
			return verdict{reject: weftv1.Violation_REASON_REFERENCE}
		}
		return verdict{}
	})
	var rejected *client.RejectedError
	if _, err := s.Withdraw(ctx, "list"); !errors.As(err, &rejected) {
		t.Fatalf("withdraw: %v", err)
	}
	must(t, errorOf(s.Patch(ctx, p.change("list", "10.0.0.2", ""))))
	if got := f.keys("list"); !slices.Equal(got, p.keys()) {
		t.Fatalf("keys %v: want %v", got, p.keys())
	}
	f.behave(nil, nil)
	must(t, errorOf(s.Withdraw(ctx, "list")))
	if got := f.keys("list"); got != nil {
		t.Fatalf("keys %v after the withdrawal", got)
	}
	if _, err := s.Patch(ctx, p.change("list", "10.0.0.3", "")); !errors.Is(err, client.ErrNoSnapshot) {
		t.Fatalf("patch of a withdrawn fragment: %v", err)
	}
}

// TestRejectedPutHasNotHappened loses the connection after a Put that was
// refused, of a session that keeps the content: what was committed comes back.
func TestRejectedPutHasNotHappened(t *testing.T) {
	f, ctx := newFake(t), aggregatortest.Context(t)
	good, bad := newPublisher("10.0.0.1"), newPublisher("10.0.0.2")
	s := startSession(t, f.dial(t), client.SessionConfig{})
	must(t, errorOf(s.Put(ctx, good.fragment("list"))))
	f.behave(nil, func(string, *weftv1.PublishRequest) verdict { return verdict{reject: weftv1.Violation_REASON_SYNTAX} })
	for _, name := range []string{"list", "other"} {
		if _, err := s.Put(ctx, bad.fragment(name)); err == nil {
			t.Fatal("put of a bad fragment succeeded")
		}
	}
	f.behave(nil, nil)
	f.reboot(t)
	aggregatortest.Eventually(t, "the committed content is back", func() bool { return slices.Equal(f.keys("list"), good.keys()) })
	must(t, errorOf(s.Put(ctx, good.fragment("last"))))
	if got := f.keys("other"); got != nil {
		t.Fatalf("a fragment that was refused came to be: %v", got)
	}
}

// TestRefusedStream has the aggregator refuse streams, for a while.
func TestRefusedStream(t *testing.T) {
	for code, want := range map[codes.Code]error{codes.PermissionDenied: client.ErrPermission, codes.ResourceExhausted: client.ErrLimit} {
		f, ctx, p := newFake(t), aggregatortest.Context(t), newPublisher("10.0.0.1")
		f.behave(func() error { return status.Error(code, "not you") }, nil)
		r := &reports{}
		s := startSession(t, f.dial(t), r.config(client.SessionConfig{}))
		if _, err := s.Put(ctx, p.fragment("list")); !errors.Is(err, want) || !strings.Contains(err.Error(), "not you") {
			t.Fatalf("%v: put: %v", code, err)
		}
		aggregatortest.Eventually(t, "it is tried again and reported", func() bool { return r.streamed(want) >= 3 })
		if r.streamed(nil) > 0 {
			t.Fatal("a refused stream was reported as open")
		}
		f.behave(nil, nil)
		// Not a verdict on the fragment: it is still wanted.
		aggregatortest.Eventually(t, "the fragment is there", func() bool { return slices.Equal(f.keys("list"), p.keys()) })
	}
}

// TestLostFragmentIsNotTakenBack loses a fragment to another stream, and then
// the connection: only a Put takes it back.
func TestLostFragmentIsNotTakenBack(t *testing.T) {
	f, ctx, p := newFake(t), aggregatortest.Context(t), newPublisher("10.0.0.1")
	s := startSession(t, f.dial(t), p.config())
	for _, name := range []string{"list", "mine"} {
		must(t, errorOf(s.Put(ctx, p.fragment(name))))
	}
	f.behave(nil, func(name string, req *weftv1.PublishRequest) verdict {
		if name == "list" && req.GetPatch() != nil {
			return verdict{reject: weftv1.Violation_REASON_TAKEN_OVER}
		}
		return verdict{}
	})
	if _, err := s.Patch(ctx, p.change("list", "10.0.0.2", "")); !errors.Is(err, client.ErrTakenOver) {
		t.Fatalf("patch: %v", err)
	}
	f.behave(nil, nil)
	f.reboot(t)
	aggregatortest.Eventually(t, "the session is back", func() bool { return f.keys("mine") != nil })
	if _, err := s.Patch(ctx, p.change("list", "10.0.0.3", "")); !errors.Is(err, client.ErrTakenOver) {
		t.Fatalf("patch after the reconnect: %v", err)
	}
	if got := f.keys("list"); got != nil {
		t.Fatalf("the fragment was taken back: %v", got)
	}
	must(t, errorOf(s.Put(ctx, p.fragment("list"))))
	must(t, errorOf(s.Patch(ctx, p.change("list", "10.0.0.4", ""))))
	if got := f.keys("list"); !slices.Equal(got, p.keys()) {
		t.Fatalf("keys %v: want %v", got, p.keys())
	}
}

// TestUnsendableUpdates have an update that cannot be encoded, and some that no
// message holds: only their own callers notice.
func TestUnsendableUpdates(t *testing.T) {
	f, ctx, p := newFake(t), aggregatortest.Context(t), newPublisher("10.0.0.1")
	s := startSession(t, f.dial(t), client.SessionConfig{Snapshot: p.fragment})
	must(t, errorOf(s.Put(ctx, p.fragment("list"))))
	large := &weftv1.Fragment{Name: "file", Nft: strings.Repeat("#", client.MaxMessage+1)}
	half := &weftv1.Fragment{Name: "half"}
	for range 3 {
		half.Tables = append(half.Tables, &weftv1.Table{Family: "ip", Name: "t", Chains: []*weftv1.Chain{{Name: "c", Rules: make([]*weftv1.Rule, 300)}}})
	}
	for _, tab := range half.GetTables() {
		for i := range tab.GetChains()[0].GetRules() {
			tab.Chains[0].Rules[i] = &weftv1.Rule{Text: "accept"}
		}
	}
	half.Tables[2].Chains[0].Rules[7].Comment = "\xff"
	patch := p.change("list", "10.0.0.2", "")
	patch.Tables[0].Elements[0].Add[0].Comment = "\xff"
	for _, u := range []struct {
		name string
		do   func() *client.Pending
		want error
	}{
		{"file", func() *client.Pending { return s.StartPut(large) }, client.ErrTooLarge},
		{"patch", func() *client.Pending { return s.StartPatch(patch) }, client.ErrInvalid},
		{"name", func() *client.Pending { return s.StartWithdraw("\xff") }, client.ErrInvalid},
		{"nil fragment", func() *client.Pending { return s.StartPut(nil) }, client.ErrInvalid},
		{"nil patch", func() *client.Pending { return s.StartPatch(nil) }, client.ErrInvalid},
	} {
		if _, err := u.do().Wait(ctx); !errors.Is(err, u.want) {
			t.Errorf("%s: %v: want %v", u.name, err, u.want)
		}
	}
	if n := f.opened(); n != 1 {
		t.Errorf("%d streams: want 1", n)
	}
	// Parts of this one are sent before the bad one is found.
	if _, err := s.Put(ctx, half); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("half: %v", err)
	}
	must(t, errorOf(s.Patch(ctx, p.change("list", "10.0.0.3", ""))))
	if got := f.keys("list"); !slices.Equal(got, p.keys()) || f.keys("half") != nil {
		t.Fatalf("keys %v: want %v", got, p.keys())
	}
	if n := f.opened(); n != 2 {
		t.Errorf("%d streams: want 2", n)
	}
}

// TestUpdatesWhileNobodyListens makes many updates while there is no aggregator:
// what is kept, and sent in the end, is one update of each fragment.
func TestUpdatesWhileNobodyListens(t *testing.T) {
	f, ctx, p := newFake(t), aggregatortest.Context(t), newPublisher("10.0.0.1")
	s := startSession(t, f.dial(t), p.config())
	must(t, errorOf(s.Put(ctx, p.fragment("old"))))
	f.stop()
	updates := 0
	f.behave(nil, func(string, *weftv1.PublishRequest) verdict {
		updates++
		return verdict{}
	})
	pending := []*client.Pending{s.StartPut(p.fragment("new")), s.StartPut(p.fragment("gone"))}
	for i := range 200 {
		pending = append(pending, s.StartPatch(p.change([]string{"old", "new"}[i&1], fmt.Sprintf("10.0.1.%d", i), "")))
	}
	pending = append(pending, s.StartWithdraw("gone"))
	f.start(t)
	for _, w := range pending {
		must(t, errorOf(w.Wait(ctx)))
	}
	for _, name := range []string{"old", "new"} {
		if got := f.keys(name); !slices.Equal(got, p.keys()) {
			t.Errorf("%s has %v: want %v", name, got, p.keys())
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// One more for each where the loss of the connection is noticed late.
	if f.held["gone"] != nil || updates > 6 {
		t.Errorf("gone is %v, %d updates: want 3", f.held["gone"], updates)
	}
}
