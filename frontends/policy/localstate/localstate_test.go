package localstate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/localsocket"
	"github.com/weft-proxy/weft/frontends/policy/localstate/statepb"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/publish/outcomepb"
)

// fakeSource is a state that a test writes.
type fakeSource struct {
	mu    sync.Mutex
	state State
}

func (f *fakeSource) State(names func() *Names, members bool) State {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.state
	if !members {
		out.Sets = nil
		for _, s := range f.state.Sets {
			s.Members = nil
			out.Sets = append(out.Sets, s)
		}
	}
	if names == nil {
		return out
	}
	n := names()
	all := out
	out.Pods, out.Policies, out.Sets = nil, nil, nil
	for _, p := range all.Pods {
		if contains(n.Pods, p.UID) {
			out.Pods = append(out.Pods, p)
		}
	}
	for _, p := range all.Policies {
		if contains(n.Policies, p.ID) {
			out.Policies = append(out.Policies, p)
		}
	}
	for _, s := range all.Sets {
		if contains(n.Sets, s.ID) {
			out.Sets = append(out.Sets, s)
		}
	}
	return out
}

func contains[T comparable](list []T, v T) bool { return len(missing([]T{v}, list)) == 0 }

// connect serves a source on a socket and returns a client of it.
func connect(t *testing.T, s *Server) statepb.LocalStateClient {
	t.Helper()
	path := filepath.Join(t.TempDir(), SocketName)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- localsocket.Serve(ctx, localsocket.Config{Path: path, Register: s.Register}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return statepb.NewLocalStateClient(conn)
}

var (
	db   = model.PolicyID{Tier: model.TierNetworkPolicy, Namespace: "shop", Name: "db"}
	base = model.PolicyID{Tier: model.TierBaseline, Name: "base"}
)

// example returns a state with two pods, three policies and a set with so many members.
func example(members int) State {
	pod := &model.Pod{UID: "1", Name: types.NamespacedName{Namespace: "shop", Name: "db-1"}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
	pod.Policies[model.Ingress] = []model.PolicyID{db, base}
	block := model.Range{First: netip.MustParseAddr("10.0.0.0"), Last: netip.MustParseAddr("10.0.0.255")}
	one := model.Range{First: netip.MustParseAddr("10.1.0.0"), Last: netip.MustParseAddr("10.1.0.0")}
	p := &model.Policy{ID: db}
	p.Rules[model.Ingress] = []model.Rule{
		{Name: "ingress[0]", Pods: []model.SetID{"s"}, Ports: []model.PortRange{{Protocol: model.TCP, First: 80, Last: 90}}},
		{Name: "ingress[1]", Blocks: []model.Range{block, one}, NamedPorts: []model.SetID{"s"}},
	}
	q := &model.Policy{ID: base, Priority: 7}
	q.Rules[model.Egress] = []model.Rule{{Name: "egress[0]", Action: model.Deny, Any: true, AllPorts: true}, {Name: "egress[1]", Action: model.Pass, Any: true, AllPorts: true}}
	admin := &model.Policy{ID: model.PolicyID{Tier: model.TierAdmin, Name: "first"}}
	set := Set{Set: &model.Set{ID: "s", Comment: "shop: app=api"}, Size: members, Outcome: publish.Outcome{State: publish.InForce, Revision: 8}}
	for i := range members {
		set.Members = append(set.Members, model.Member{Addr: netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})})
	}
	return State{
		Node: model.Node{Name: "node-1", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}, Pods: []Pod{{Pod: pod, Outcome: publish.Outcome{State: publish.InForce, Revision: 9}}},
		Policies: []Policy{{Policy: admin}, {Policy: p, Pods: 1, Outcome: publish.Outcome{State: publish.Refused, Reason: errors.New("no")}, Problems: []string{"ingress[2]"}}, {Policy: q, Pods: 1}},
		Sets:     []Set{set}, Counters: Counters{Revision: 3, Pods: 9, LocalPods: 1},
	}
}

// TestWatchOnce reads a whole state, with a set that does not fit in one message.
func TestWatchOnce(t *testing.T) {
	const members = 40000
	s := New(&fakeSource{state: example(members)}, 7)
	c := connect(t, s)
	stream, err := c.Watch(t.Context(), &statepb.WatchRequest{Once: true})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Fatalf("before everything is known: %v", err)
	}
	s.Changed(&model.Changes{})
	stream, err = c.Watch(t.Context(), &statepb.WatchRequest{Once: true, Members: true})
	if err != nil {
		t.Fatal(err)
	}
	got, messages := 0, 0
	var policies []*statepb.Policy
	for synced := false; !synced; messages++ {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range m.GetSets() {
			if set.GetContinued() != (got > 0) || set.GetSize() != members || set.GetOutcome().GetRevision() != 8 {
				t.Errorf("part of a set after %d members: %v, %d", got, set.GetContinued(), set.GetSize())
			}
			got += len(set.GetMembers())
		}
		policies = append(policies, m.GetPolicies()...)
		if messages == 0 && (m.GetNode().GetName() != "node-1" || len(m.GetPods()) != 1 || m.GetDropLog() != 7 || m.GetPods()[0].GetOutcome().GetRevision() != 9 || len(m.GetPods()[0].GetIngress()) != 2) {
			t.Errorf("the first message is %v", m)
		}
		if synced = m.GetSynced(); synced && m.GetCounters().GetPods() != 9 {
			t.Errorf("counters %v", m.GetCounters())
		}
	}
	if got != members || messages < 3 {
		t.Errorf("%d members in %d messages", got, messages)
	}
	if len(policies) != 3 || policies[1].GetOutcome().GetState() != outcomepb.State_STATE_REFUSED || policies[1].GetOutcome().GetReason() != "no" || policies[1].GetIngress()[1].GetBlocks()[0] != "10.0.0.0-10.0.0.255" ||
		policies[1].GetIngress()[1].GetBlocks()[1] != "10.1.0.0" || policies[2].GetEgress()[1].GetAction() != statepb.Action_ACTION_PASS {
		t.Errorf("policies %v", policies)
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("the call goes on after the state")
	}
}

// TestWatchFollows sends what changes and what goes.
func TestWatchFollows(t *testing.T) {
	source := &fakeSource{state: example(2)}
	s := New(source, 0)
	c := connect(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	stream, err := c.Watch(ctx, &statepb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	s.Changed(&model.Changes{})
	m, err := stream.Recv()
	if err != nil || len(m.GetSets()) != 1 || len(m.GetSets()[0].GetMembers()) != 0 {
		t.Fatalf("state %v, error %v", m, err)
	}
	source.mu.Lock()
	old := source.state
	source.state.Pods, source.state.Sets = nil, nil
	source.state.Policies = old.Policies[:2]
	source.state.Node.Name = "renamed"
	s.Changed(&model.Changes{
		Pods: []model.PodChange{{Old: old.Pods[0].Pod}}, Policies: []model.PolicyChange{{Old: old.Policies[2].Policy}},
		Sets: []model.SetChange{{Old: old.Sets[0].Set}}, Node: &model.Node{Name: "renamed"},
	})
	source.mu.Unlock()
	if m, err = stream.Recv(); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(m.GetNode().GetName(), m.GetRemovedPods(), len(m.GetRemovedPolicies()), m.GetRemovedPolicies()[0].GetName(), m.GetRemovedSets(), len(m.GetPolicies()))
	if text != "renamed[1] 1base[s] 1" {
		t.Errorf("a change is %s: %v", text, m)
	}
	source.mu.Lock()
	source.state.Policies[1].Outcome = publish.Outcome{State: publish.InForce}
	s.OutcomesChanged(&Names{Policies: []model.PolicyID{db}})
	source.mu.Unlock()
	if m, err = stream.Recv(); err != nil || len(m.GetPolicies()) != 1 || m.GetPolicies()[0].GetOutcome().GetState() != outcomepb.State_STATE_IN_FORCE || m.GetNode() != nil {
		t.Errorf("a policy that is in force again: %v, error %v", m, err)
	}
	cancel()
	if _, err = stream.Recv(); err == nil {
		t.Error("the call goes on after its context")
	}
}
