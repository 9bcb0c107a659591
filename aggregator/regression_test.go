package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

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

func brief(key string) *weftv1.Fragment {
	f := blocklist("brief", key)
	f.Lifetime = weftv1.Lifetime_LIFETIME_SESSION
	return f
}

// TestLeaveSurvivesARefusedBatch ends a session in the same batch in which another
// publisher's update is refused by the kernel.
func TestLeaveSurvivesARefusedBatch(t *testing.T) {
	k := &held{}
	k.Refuse = func(op kernel.Op) (syscall.Errno, string) {
		if c, ok := op.(kernel.AddChain); ok && c.Chain.Name == "poison" {
			return syscall.EINVAL, "no"
		}
		return 0, ""
	}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	c := d.Dial(t, "other")
	s := raw(t, d, "tester")
	wantCommitted(t, exchange(t, s, snapshotOf(1, brief("10.0.0.1"))))
	wantCommitted(t, exchange(t, s, snapshotOf(2, blocklist("stays", "10.0.0.2"))))

	release := k.block(t)
	apply := func(f *weftv1.Fragment) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := c.Apply(aggregatortest.Context(t), f)
			done <- err
		}()
		return done
	}
	first := apply(blocklist("busy", "10.0.0.3"))
	aggregatortest.Eventually(t, "the writer is busy", k.busy)
	poison := apply(&weftv1.Fragment{Name: "poison", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Chains: []*weftv1.Chain{{Name: "poison", Rules: []*weftv1.Rule{{Text: "drop"}}}},
	}}})
	aggregatortest.Eventually(t, "the poison waits", func() bool { return d.Aggregator.Pending() == 1 })
	must(t, s.CloseSend())
	aggregatortest.Eventually(t, "the session has ended", func() bool { return d.Aggregator.Pending() == 2 })
	release()
	must(t, <-first)
	rejection(t, <-poison, weftv1.Violation_REASON_KERNEL)
	aggregatortest.Eventually(t, "the session's fragment is withdrawn", func() bool { return len(k.Elements(demo, "blocked")) == 2 })
	wantElements(t, &k.Kernel, "10.0.0.2", "10.0.0.3")
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
// the restarted aggregator still reads the kernel.
func TestUpdatesWaitForAdoption(t *testing.T) {
	k, dir := &held{}, t.TempDir()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir}})
	ctx := aggregatortest.Context(t)
	user := &weftv1.Fragment{Name: "user", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Chains: []*weftv1.Chain{{Name: "use", Rules: []*weftv1.Rule{{Text: "ip saddr @blocked accept"}}}},
	}}}
	c := d.Dial(t, "tester")
	for _, f := range []*weftv1.Fragment{blocklist("list", "10.0.0.1"), user} {
		mustApply(t, c, f)
	}
	must(t, d.Stop())
	release := k.block(t)
	d = aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: dir, Standby: true}})
	aggregatortest.Eventually(t, "it adopts", k.busy)
	s := raw(t, d, "tester")
	must(t, s.Send(snapshotOf(1, user)))
	applied := make(chan error, 1)
	c = d.Dial(t, "tester")
	go func() {
		_, err := c.Apply(ctx, user)
		applied <- err
	}()
	release()
	resp, err := s.Recv()
	must(t, err)
	wantCommitted(t, resp)
	must(t, <-applied)
}

// TestStatusFollowsOthersShadows looks at the status of a fragment that did not
// change while another one's elements hid its own, and no longer do.
func TestStatusFollowsOthersShadows(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
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
	if _, err := c.Delete(ctx, "", "first"); err != nil {
		t.Fatal(err)
	}
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
	if err := push(empty(admission.MaxFragments)); err != nil {
		t.Fatalf("after a withdrawal: %v", err)
	}
}
