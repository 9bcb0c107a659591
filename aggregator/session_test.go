package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
)

// raw opens a bare Publish stream.
func raw(t *testing.T, d *aggregatortest.Daemon, publisher string) grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse] {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+d.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ctx := metadata.AppendToOutgoingContext(aggregatortest.Context(t), "weft-publisher", publisher)
	stream, err := weftv1.NewPublisherClient(conn).Publish(ctx)
	must(t, err)
	return stream
}

// exchange sends a request and returns its acknowledgement.
func exchange(t *testing.T, s grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse], req *weftv1.PublishRequest) *weftv1.PublishResponse {
	t.Helper()
	must(t, s.Send(req))
	resp, err := s.Recv()
	must(t, err)
	if resp.GetId() != req.GetId() {
		t.Fatalf("acknowledgement of %d: want %d", resp.GetId(), req.GetId())
	}
	return resp
}

func snapshotOf(id uint64, f *weftv1.Fragment) *weftv1.PublishRequest {
	return &weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}}
}

func patchOf(id uint64, p *weftv1.Patch) *weftv1.PublishRequest {
	return &weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Patch{Patch: p}}
}

func wantReason(t *testing.T, r *weftv1.PublishResponse, want weftv1.Violation_Reason) {
	t.Helper()
	if len(r.GetRejected().GetViolations()) == 0 || r.GetRejected().GetViolations()[0].GetReason() != want {
		t.Fatalf("answer %v: want reason %v", r, want)
	}
}

func wantCommitted(t *testing.T, r *weftv1.PublishResponse) {
	t.Helper()
	if r.GetCommitted().GetRevision() == 0 {
		t.Fatalf("answer %v: want committed", r)
	}
}

func TestPatchNeedsSnapshotOfTheStream(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
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
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	first, second := raw(t, d, "tester"), raw(t, d, "tester")
	wantCommitted(t, exchange(t, first, snapshotOf(1, blocklist("list", "10.0.0.1"))))
	wantCommitted(t, exchange(t, second, snapshotOf(1, blocklist("list", "10.0.0.2"))))
	wantReason(t, exchange(t, first, patchOf(2, patch("list", []string{"10.0.0.3"}, nil))), weftv1.Violation_REASON_TAKEN_OVER)
	wantCommitted(t, exchange(t, second, patchOf(2, patch("list", []string{"10.0.0.4"}, nil))))
	wantElements(t, k, "10.0.0.2", "10.0.0.4")
}

func TestSnapshotInParts(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
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
	if n := len(k.Elements(demo, "blocked")); n != 1500 {
		t.Fatalf("%d elements: want 1500", n)
	}
	if n := len(k.Commits()); n != 1 {
		t.Fatalf("%d commits: want one", n)
	}
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
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
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
	if _, err := c.Delete(ctx, "other", "user"); err != nil {
		t.Fatal(err)
	}
	mustApply(t, c, blocklist("nudge", "10.0.0.8"))
	aggregatortest.Eventually(t, "the chain is gone", func() bool { return k.Rules(demo, "target") == nil })
	f := blocklist("unary")
	f.Lifetime = weftv1.Lifetime_LIFETIME_SESSION
	_, err := c.Apply(ctx, f)
	rejection(t, err, weftv1.Violation_REASON_INVALID)
}

// TestRefusedDeclarationNeedsSnapshot refuses a change of declarations that the
// next patch was compiled against.
func TestRefusedDeclarationNeedsSnapshot(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
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

// fakeFlows records what it is asked to remove.
type fakeFlows struct {
	mu         sync.Mutex
	stale      []conntrack.Change
	live       [][]conntrack.Destination
	fail       int
	commitsAt  []int
	commits    func() int
	deleteEach int
}

func (f *fakeFlows) Flush(_ context.Context, stale []conntrack.Change) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail > 0 {
		f.fail--
		return 0, errors.New("no buffer space")
	}
	f.stale = append(f.stale, stale...)
	f.commitsAt = append(f.commitsAt, f.commits())
	return f.deleteEach, nil
}

func (f *fakeFlows) Reconcile(_ context.Context, live []conntrack.Destination) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = append(f.live, live)
	return 0, nil
}

func (f *fakeFlows) counts() (stale, live int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.stale), len(f.live)
}

// services returns a fragment whose map sends one UDP service to backends.
func services(backends ...string) *weftv1.Fragment {
	m := &weftv1.Set{Name: "endpoints", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK, Type: "ipv4_addr . inet_proto . inet_service . integer : ipv4_addr . inet_service"}
	m.Type, m.Typeof = "", "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"
	for i, b := range backends {
		m.Elements = append(m.Elements, &weftv1.Element{Key: fmt.Sprintf("10.96.0.1 . udp . 53 . %d", i), Value: b + " . 5353"})
	}
	return &weftv1.Fragment{Name: "services", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Maps: []*weftv1.Set{m},
	}}}
}

// TestFlowsAreFlushedAfterCommits looks at what conntrack is asked for, and when.
//
// Behaviour: 116.
func TestFlowsAreFlushedAfterCommits(t *testing.T) {
	k := &aggregatortest.Kernel{}
	flows := &fakeFlows{commits: func() int { return len(k.Commits()) }, deleteEach: 3}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Flows: flows}})
	c := d.Dial(t, "tester")
	mustApply(t, c, services("10.1.0.1", "10.1.0.2"))
	aggregatortest.Eventually(t, "the new service's flows are flushed, and compared with its backends: another proxy may have made them", func() bool {
		stale, live := flows.counts()
		return stale == 1 && live == 1
	})
	flows.mu.Lock()
	if first := flows.live[0]; len(first) != 1 || len(first[0].Backends) != 2 {
		t.Errorf("reconciled with %+v", first)
	}
	flows.mu.Unlock()
	events := watch(t, d)
	mustApply(t, c, services("10.1.0.1", "10.1.0.3"))
	aggregatortest.Eventually(t, "the old backend's flows are flushed", func() bool { stale, _ := flows.counts(); return stale == 2 })
	flows.mu.Lock()
	last, at := flows.stale[1], flows.commitsAt[1]
	flows.mu.Unlock()
	if len(last.Removed) != 1 || last.Removed[0].String() != "10.1.0.2:5353" || last.Port != 53 || last.First || at != 2 {
		t.Fatalf("flushed %+v after %d commits", last, at)
	}
	events.until(t, "the commit's event has the flows", func(e *weftv1.WatchResponse) bool { return e.GetCommit().GetFlows() == 3 })

	flows.mu.Lock()
	flows.fail = 1
	flows.mu.Unlock()
	mustApply(t, c, services("10.1.0.1"))
	aggregatortest.Eventually(t, "a failed flush is made up for", func() bool { _, live := flows.counts(); return live == 2 })
}

func TestFlowsWaitForAdoptedFragments(t *testing.T) {
	k := &aggregatortest.Kernel{}
	flows := &fakeFlows{commits: func() int { return len(k.Commits()) }}
	cfg := aggregator.Config{Kernel: k, Flows: flows, StateDir: t.TempDir()}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	mustApply(t, d.Dial(t, "tester"), services("10.1.0.1"))
	must(t, d.Stop())
	_, before := flows.counts()
	d = aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	if _, live := flows.counts(); live != before {
		t.Fatal("flows were reconciled before the fragment came back")
	}
	mustApply(t, d.Dial(t, "tester"), services("10.1.0.2"))
	aggregatortest.Eventually(t, "flows are reconciled", func() bool { _, live := flows.counts(); return live == before+1 })
	flows.mu.Lock()
	defer flows.mu.Unlock()
	last := flows.live[len(flows.live)-1]
	if len(last) != 1 || len(last[0].Backends) != 1 || last[0].Backends[0].String() != "10.1.0.2:5353" {
		t.Fatalf("reconciled with %+v", last)
	}
}

func TestListPublishers(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	s := session(t, c, func(string) *weftv1.Fragment { return blocklist("list", "10.0.0.1", "10.0.0.2") })
	if _, err := s.Put(ctx, blocklist("list", "10.0.0.1", "10.0.0.2")); err != nil {
		t.Fatal(err)
	}
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
	if n := len(p.GetSessions()); n != 1 {
		t.Fatalf("%d sessions: want 1", n)
	}
	if st := p.GetSessions()[0]; st.GetPid() != int32(os.Getpid()) || st.GetUid() != uint32(os.Getuid()) || st.GetPending() != 0 || !st.GetSince().IsValid() {
		t.Errorf("session is %v: want this process", st)
	}
	must(t, s.Close())
	aggregatortest.Eventually(t, "the session is gone", func() bool {
		list, err := d.Aggregator.ListPublishers()
		return err == nil && len(list.GetPublishers()) == 1 && len(list.GetPublishers()[0].GetSessions()) == 0
	})
}
