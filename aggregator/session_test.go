package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/nft/kernel"
)

func TestPatchNeedsSnapshotOfTheStream(t *testing.T) {
	k, d := inMemory(t)
	s := raw(t, d, "tester")
	wantReason(t, exchange(t, s, patchOf(1, patch("list", []string{"10.0.0.1"}, nil))), weftv1.Violation_REASON_SNAPSHOT_NEEDED)
	wantCommitted(t, exchange(t, s, snapshotOf(2, blocklist("list"))))
	wantCommitted(t, exchange(t, s, patchOf(3, patch("list", []string{"10.0.0.1"}, nil))))
	// A unary call replaces the content: what the stream patches is gone.
	mustApply(t, d.Dial(t, "tester"), blocklist("list", "10.0.0.5"))
	wantReason(t, exchange(t, s, patchOf(4, patch("list", []string{"10.0.0.2"}, nil))), weftv1.Violation_REASON_SNAPSHOT_NEEDED)
	wantElements(t, k, "10.0.0.5")
}

func TestSecondStreamTakesOver(t *testing.T) {
	k, d := inMemory(t)
	first, second := raw(t, d, "tester"), raw(t, d, "tester")
	wantCommitted(t, exchange(t, first, snapshotOf(1, blocklist("list", "10.0.0.1"))))
	wantCommitted(t, exchange(t, second, snapshotOf(1, blocklist("list", "10.0.0.2"))))
	wantReason(t, exchange(t, first, patchOf(2, patch("list", []string{"10.0.0.3"}, nil))), weftv1.Violation_REASON_TAKEN_OVER)
	wantCommitted(t, exchange(t, second, patchOf(2, patch("list", []string{"10.0.0.4"}, nil))))
	wantElements(t, k, "10.0.0.2", "10.0.0.4")
}

func TestSnapshotInParts(t *testing.T) {
	k, d := inMemory(t)
	s := raw(t, d, "tester")
	for i := range 3 {
		f := blocklist("list")
		if i > 0 {
			f.Tables[0].Chains = nil
			f.Tables[0].Sets[0] = &weftv1.Set{Name: "blocked"}
		}
		for j := range 500 {
			f.Tables[0].Sets[0].Elements = append(f.Tables[0].Sets[0].Elements, &weftv1.Element{Key: fmt.Sprintf("10.%d.%d.%d", i, j/256, j%256)})
		}
		req := snapshotOf(7, f)
		req.More = i < 2
		must(t, s.Send(req))
	}
	resp, err := s.Recv()
	must(t, err)
	wantCommitted(t, resp)
	same(t, "elements", len(k.Elements(demo, "blocked")), 1500)
	same(t, "commits", len(k.Commits()), 1)
	// Another update before the last part is a mistake of the client's.
	req := snapshotOf(8, blocklist("list"))
	req.More = true
	must(t, s.Send(req))
	must(t, s.Send(patchOf(9, patch("list", nil, nil))))
	if _, err := s.Recv(); err == nil || !strings.Contains(err.Error(), "before the last part") {
		t.Fatalf("stream ended with %v", err)
	}
}

func TestSessionLifetime(t *testing.T) {
	k, d := inMemory(t)
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	brief := blocklist("brief", "10.0.0.1")
	brief.Lifetime = weftv1.Lifetime_LIFETIME_SESSION
	s, other := raw(t, d, "tester"), raw(t, d, "other")
	wantCommitted(t, exchange(t, s, snapshotOf(1, brief)))
	wantCommitted(t, exchange(t, s, snapshotOf(2, blocklist("sticky", "10.0.0.2"))))
	must(t, s.CloseSend())
	aggregatortest.Eventually(t, "the session's fragment is gone", func() bool { return len(k.Elements(demo, "blocked")) == 1 })
	wantElements(t, k, "10.0.0.2")

	// One that something refers to goes as soon as it can.
	s = raw(t, d, "tester")
	chain := &weftv1.Fragment{Name: "chain", Lifetime: weftv1.Lifetime_LIFETIME_SESSION, Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Chains: []*weftv1.Chain{{Name: "target", Rules: []*weftv1.Rule{{Text: "drop"}}}},
	}}}
	wantCommitted(t, exchange(t, s, snapshotOf(1, chain)))
	user := &weftv1.Fragment{Name: "user", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Chains: []*weftv1.Chain{{Name: "source", Rules: []*weftv1.Rule{{Text: "jump target"}}}},
	}}}
	wantCommitted(t, exchange(t, other, snapshotOf(1, user)))
	events := watch(t, d)
	must(t, s.CloseSend())
	events.until(t, "the withdrawal is refused", func(e *weftv1.WatchResponse) bool { return e.GetRejection().GetFragment().Text() == "tester/chain" })
	if got := k.Rules(demo, "target"); len(got) != 1 {
		t.Fatalf("rules of the chain in use: %v", got)
	}
	must(t, errorOf(c.Delete(ctx, "other", "user")))
	mustApply(t, c, blocklist("nudge", "10.0.0.8"))
	aggregatortest.Eventually(t, "the chain is gone", func() bool { return k.Rules(demo, "target") == nil })
	f := blocklist("unary")
	f.Lifetime = weftv1.Lifetime_LIFETIME_SESSION
	rejection(t, errorOf(c.Apply(ctx, f)), weftv1.Violation_REASON_INVALID)
}

// TestRefusedDeclarationNeedsSnapshot refuses a change of declarations that the
// next patch was compiled against.
func TestRefusedDeclarationNeedsSnapshot(t *testing.T) {
	k, d := inMemory(t)
	s, other := raw(t, d, "tester"), raw(t, d, "other")
	wantCommitted(t, exchange(t, other, snapshotOf(1, blocklist("theirs", "10.0.0.1"))))
	wantCommitted(t, exchange(t, s, snapshotOf(1, blocklist("list", "10.0.0.2"))))
	p := &weftv1.Patch{Fragment: "list", Tables: []*weftv1.TablePatch{{
		Family: "ip", Name: "demo", PutSets: []*weftv1.Set{{Name: "blocked", Type: "ipv4_addr . inet_service", Elements: elements("10.0.0.2 . 80")}},
	}}}
	must(t, s.Send(patchOf(2, p)))
	behind := patch("list", []string{"10.0.0.3 . 80"}, nil)
	wantReason(t, exchangeTwo(t, s, patchOf(3, behind)), weftv1.Violation_REASON_CONFLICT)
	resp, err := s.Recv()
	must(t, err)
	wantReason(t, resp, weftv1.Violation_REASON_SNAPSHOT_NEEDED)
	wantCommitted(t, exchange(t, s, snapshotOf(4, blocklist("list", "10.0.0.4"))))
	wantCommitted(t, exchange(t, s, patchOf(5, patch("list", []string{"10.0.0.5"}, nil))))
	wantElements(t, k, "10.0.0.1", "10.0.0.4", "10.0.0.5")
}

// exchangeTwo sends a request behind one that was sent, and returns the
// acknowledgement of that one.
func exchangeTwo(t *testing.T, s grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse], req *weftv1.PublishRequest) *weftv1.PublishResponse {
	t.Helper()
	must(t, s.Send(req))
	resp, err := s.Recv()
	must(t, err)
	return resp
}

func TestListPublishers(t *testing.T) {
	_, d := inMemory(t)
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	s := session(t, c, func(string) *weftv1.Fragment { return blocklist("list", "10.0.0.1", "10.0.0.2") })
	must(t, errorOf(s.Put(ctx, blocklist("list", "10.0.0.1", "10.0.0.2"))))
	if _, err := c.Apply(ctx, ruled("bad", "jump nowhere")); err == nil {
		t.Fatal("a dangling jump was accepted")
	}
	list, err := d.Aggregator.ListPublishers()
	if err != nil || len(list.GetPublishers()) != 1 {
		t.Fatalf("publishers are %v, error %v: want tester", list, err)
	}
	p := list.GetPublishers()[0]
	if p.GetName() != "tester" || p.GetFragments() != 1 || p.GetRules() != 1 || p.GetElements() != 2 || p.GetCommitted() != 1 || p.GetRejected() != 1 ||
		p.GetLastRejection().GetFragment().Text() != "tester/bad" || !p.GetLastRejected().IsValid() {
		t.Errorf("publisher is %v", p)
	}
	same(t, "sessions", len(p.GetSessions()), 1)
	if st := p.GetSessions()[0]; st.GetPid() != int32(os.Getpid()) || st.GetUid() != uint32(os.Getuid()) || st.GetPending() != 0 || !st.GetSince().IsValid() {
		t.Errorf("session is %v: want this process", st)
	}
	must(t, s.Close())
	aggregatortest.Eventually(t, "the session is gone", func() bool {
		list, err := d.Aggregator.ListPublishers()
		return err == nil && len(list.GetPublishers()) == 1 && len(list.GetPublishers()[0].GetSessions()) == 0
	})
}

// held is a kernel whose commits and adoptions wait while hold is set.
type held struct {
	aggregatortest.Kernel
	mu      sync.Mutex
	hold    chan struct{}
	waiting int
}

// block makes what comes next wait until the result is called.
func (k *held) block(t *testing.T) (release func()) {
	c := make(chan struct{})
	k.mu.Lock()
	k.hold, k.waiting = c, 0
	k.mu.Unlock()
	release = sync.OnceFunc(func() {
		k.mu.Lock()
		k.hold = nil
		k.mu.Unlock()
		close(c)
	})
	t.Cleanup(release)
	return release
}

func (k *held) wait() {
	k.mu.Lock()
	c := k.hold
	k.waiting++
	k.mu.Unlock()
	if c != nil {
		<-c
	}
}

// busy reports whether somebody waits.
func (k *held) busy() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.hold != nil && k.waiting > 0
}

func (k *held) Commit(ops []kernel.Op) (kernel.Stats, error) {
	k.wait()
	return k.Kernel.Commit(ops)
}

func (k *held) Adopt() ([]kernel.Table, error) {
	k.wait()
	return k.Kernel.Adopt()
}

// refusePoison refuses chains whose names begin with "poison".
func refusePoison(errno syscall.Errno) func(op kernel.Op) (syscall.Errno, string) {
	return func(op kernel.Op) (syscall.Errno, string) {
		if c, ok := op.(kernel.AddChain); ok && strings.HasPrefix(c.Chain.Name, "poison") {
			return errno, "no"
		}
		return 0, ""
	}
}

func brief(key string) *weftv1.Fragment {
	f := blocklist("brief", key)
	f.Lifetime = weftv1.Lifetime_LIFETIME_SESSION
	return f
}

// TestLeaveSurvivesARefusedBatch ends a session, at once or after a patch, in the same batch in which another
// publisher's update is refused by the kernel: the patch is committed, and the session's fragment goes.
func TestLeaveSurvivesARefusedBatch(t *testing.T) {
	for _, patched := range []bool{false, true} {
		k := &held{}
		k.Refuse = refusePoison(syscall.EINVAL)
		d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
		c, s := d.Dial(t, "other"), raw(t, d, "tester")
		wantCommitted(t, exchange(t, s, snapshotOf(1, brief("10.0.0.1"))))
		wantCommitted(t, exchange(t, s, snapshotOf(2, blocklist("stays", "10.0.0.2"))))
		release := k.block(t)
		apply := func(f *weftv1.Fragment) <-chan error {
			done := make(chan error, 1)
			go func() { done <- errorOf(c.Apply(aggregatortest.Context(t), f)) }()
			return done
		}
		pending := func(n int) {
			t.Helper()
			aggregatortest.Eventually(t, fmt.Sprint(n, " wait"), func() bool { return d.Aggregator.Pending() == n })
		}
		first := apply(blocklist("busy", "10.0.0.3"))
		aggregatortest.Eventually(t, "the writer is busy", k.busy)
		poison := &weftv1.Fragment{Name: "poison", Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Chains: []*weftv1.Chain{{Name: "poison"}}}}}
		want := []string{"10.0.0.2", "10.0.0.3"}
		var refused <-chan error
		if patched {
			want = append(want, "10.0.0.4")
			must(t, s.Send(patchOf(3, patch("stays", []string{"10.0.0.4"}, nil))))
			must(t, s.CloseSend())
			pending(2)
			refused = apply(poison)
			pending(3)
		} else {
			refused = apply(poison)
			pending(1)
			must(t, s.CloseSend())
			pending(2)
		}
		release()
		must(t, <-first)
		rejection(t, <-refused, weftv1.Violation_REASON_KERNEL)
		if patched {
			answer, err := s.Recv()
			must(t, err)
			wantCommitted(t, answer)
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v", err)
		}
		aggregatortest.Eventually(t, "the session's fragment is withdrawn", func() bool { return len(k.Elements(demo, "blocked")) == len(want) })
		wantElements(t, &k.Kernel, want...)
	}
}

// TestLeaveAfterADroppedWithdrawal withdraws a session's fragment and ends the
// stream before the writer comes to it.
func TestLeaveAfterADroppedWithdrawal(t *testing.T) {
	k := &held{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx, cancel := context.WithCancel(aggregatortest.Context(t))
	s, err := d.Aggregator.Session("tester", 1, 0)
	must(t, err)
	s.DropAfter(ctx)
	push := func(req *weftv1.PublishRequest) <-chan aggregator.Result {
		t.Helper()
		c, err := s.Push(req)
		must(t, err)
		return c
	}
	if r := <-push(snapshotOf(1, brief("10.0.0.1"))); r.Err != nil {
		t.Fatal(r.Err)
	}
	release := k.block(t)
	busy := push(snapshotOf(2, blocklist("stays", "10.0.0.2")))
	aggregatortest.Eventually(t, "the writer is busy", k.busy)
	dropped := push(&weftv1.PublishRequest{Id: 3, Update: &weftv1.PublishRequest_Withdraw{Withdraw: "brief"}})
	cancel()
	s.Close()
	release()
	if r := <-busy; r.Err != nil {
		t.Fatal(r.Err)
	}
	if r := <-dropped; r.Err == nil {
		t.Fatal("an update without a sender was committed")
	}
	aggregatortest.Eventually(t, "the session's fragment is withdrawn", func() bool { return len(k.Elements(demo, "blocked")) == 1 })
	wantElements(t, &k.Kernel, "10.0.0.2")
}

// TestUpdatesWaitForAdoption sends a fragment that refers to another one's set while
// the restarted aggregator still reads the kernel, and asks for a plan and an owner: what the tables of
// the last run declare is known all the same.
func TestUpdatesWaitForAdoption(t *testing.T) {
	k, dir := &held{}, t.TempDir()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	ctx := aggregatortest.Context(t)
	user := &weftv1.Fragment{Name: "user", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Chains: []*weftv1.Chain{{Name: "use", Rules: []*weftv1.Rule{{Text: "ip saddr @blocked accept"}}}},
	}}}
	c := d.Dial(t, "tester")
	mustApply(t, c, blocklist("list", "10.0.0.1"), user)
	must(t, d.Stop())
	release := k.block(t)
	d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Standby: true}})
	aggregatortest.Eventually(t, "it adopts", k.busy)
	s := raw(t, d, "tester")
	must(t, s.Send(snapshotOf(1, user)))
	applied, asked := make(chan error, 1), make(chan error, 2)
	c = d.Dial(t, "tester")
	go func() {
		plan, err := c.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{ruled("other", "ip daddr @blocked accept")}})
		if len(plan.GetRejections()) > 0 || err == nil && len(plan.GetChanges()) == 0 {
			t.Errorf("plan is %v: want one rule more", plan)
		}
		asked <- err
	}()
	go func() {
		owners, err := c.Owner(ctx, &weftv1.OwnerRequest{Object: nametest.Parse("element ip demo blocked { 10.0.0.1 }")})
		if err == nil && len(owners.GetOwners()) != 1 {
			t.Errorf("owners are %v: want one", owners)
		}
		asked <- err
	}()
	go func() { applied <- errorOf(c.Apply(ctx, user)) }()
	release()
	resp, err := s.Recv()
	must(t, err)
	wantCommitted(t, resp)
	must(t, <-applied)
	must(t, errors.Join(<-asked, <-asked))
}

// TestStatusFollowsOthersShadows looks at the status of a fragment that did not
// change while another one's elements hid its own, and no longer do.
func TestStatusFollowsOthersShadows(t *testing.T) {
	_, d := inMemory(t)
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	targets := func(name string, priority int32, value string) *weftv1.Fragment {
		return &weftv1.Fragment{Name: name, Priority: priority, Tables: []*weftv1.Table{{Family: "ip", Name: "demo", Maps: []*weftv1.Set{{
			Name: "targets", Type: "inet_service : ipv4_addr", Elements: []*weftv1.Element{{Key: "80", Value: value}},
		}}}}}
	}
	shadowed := func(want uint64) {
		t.Helper()
		got, err := c.Get(ctx, "", "second")
		if err != nil || got.GetStatus().GetShadowed() != want {
			t.Fatalf("status %v, error %v: want %d shadowed", got.GetStatus(), err, want)
		}
	}
	apply := func(f *weftv1.Fragment) {
		t.Helper()
		mustApply(t, c, f)
	}
	apply(targets("second", 2, "10.0.0.2"))
	shadowed(0)
	apply(targets("first", 1, "10.0.0.1"))
	shadowed(1)
	apply(targets("first", 1, "10.0.0.2"))
	shadowed(0)
	apply(targets("first", 1, "10.0.0.1"))
	shadowed(1)
	must(t, errorOf(c.Delete(ctx, "", "first")))
	shadowed(0)
}

// TestStreamHoldsBoundedFragments sends more fragments on one stream than there may
// be: what the aggregator remembers of a stream is bounded, whatever becomes of them.
func TestStreamHoldsBoundedFragments(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Rate: rate.Inf}})
	s, err := d.Aggregator.Session("tester", 1, 0)
	must(t, err)
	defer s.Close()
	push := func(req *weftv1.PublishRequest) error {
		t.Helper()
		c, err := s.Push(req)
		must(t, err)
		return (<-c).Err
	}
	empty := func(i int) *weftv1.PublishRequest {
		return snapshotOf(1, &weftv1.Fragment{Name: fmt.Sprintf("f-%d", i)})
	}
	for i := range admission.MaxFragments {
		must(t, push(empty(i)))
	}
	var rejected *aggregator.RejectedError
	if err := push(empty(admission.MaxFragments)); !errors.As(err, &rejected) || rejected.Violations[0].GetReason() != weftv1.Violation_REASON_LIMIT {
		t.Fatalf("one too many: %v", err)
	}
	must(t, push(&weftv1.PublishRequest{Id: 2, Update: &weftv1.PublishRequest_Withdraw{Withdraw: "f-0"}}))
	must(t, push(empty(admission.MaxFragments)))
}
