package localstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/frontends/localsocket"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/publish/outcomepb"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// fakeSource is a state that a test writes.
type fakeSource struct {
	mu       sync.Mutex
	revision uint64
	node     model.Node
	services map[model.Key]*model.Service
	outcomes map[model.Key]publish.Outcome
}

func newFakeSource() *fakeSource {
	return &fakeSource{services: make(map[model.Key]*model.Service), outcomes: make(map[model.Key]publish.Outcome)}
}

func (f *fakeSource) State(names func() []model.Key) State {
	f.mu.Lock()
	defer f.mu.Unlock()
	var keys []model.Key
	if names != nil {
		keys = names()
	} else {
		keys = slices.SortedFunc(maps.Keys(f.services), model.CompareKeys)
	}
	out := State{Snapshot: model.Snapshot{Revision: f.revision, Node: f.node}, Stats: model.Stats{Revision: f.revision, ServiceEvents: 7}}
	for _, name := range keys {
		if s := f.services[name]; s != nil {
			out.Services, out.Outcomes = append(out.Services, s), append(out.Outcomes, f.outcomes[name])
		}
	}
	return out
}

// Candidates returns the endpoints of a Service as candidates, and one more that is not ready.
func (f *fakeSource) Candidates(key model.Key) (all []model.Candidate, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.services[key]
	if s == nil {
		return nil, false
	}
	for e := range s.Ports[0].Backends[model.IPv4].Cluster.All() {
		all = append(all, model.Candidate{Endpoint: e, Protocol: model.TCP, Cluster: true})
	}
	other := model.Endpoint{Addr: netip.MustParseAddrPort("[fd00::1]:80"), Local: true}
	return append(all, model.Candidate{Endpoint: other, Port: "http", Protocol: model.UDP, ForLocal: true, Draining: true, Excluded: model.NotReady}), true
}

// Find finds Service default/a at 10.96.0.1:80/tcp, and as NodePort 30080/tcp.
func (f *fakeSource) Find(addr netip.Addr, protocol model.Protocol, port uint16) (key model.Key, name string, ok bool) {
	ok = protocol == model.TCP && (addr == netip.MustParseAddr("10.96.0.1") && port == 80 || addr == netip.Addr{} && port == 30080)
	return model.Key{Namespace: "default", Name: "a"}, "http", ok
}

// set changes a Service to one with n endpoints, or deletes it for -1, and tells s.
func (f *fakeSource) set(s *Server, name string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision++
	key := model.Key{Namespace: "default", Name: name}
	if n < 0 {
		delete(f.services, key)
	} else {
		f.services[key] = service(key, n)
	}
	f.outcomes[key] = publish.Outcome{State: publish.State(f.revision % 4), Revision: f.revision, Reason: fmt.Errorf("at %d", f.revision)} //nolint:gosec // below 4
	s.Changed(&model.Changes{Services: []model.Change{{Name: key, New: f.services[key]}}})
}

func service(name model.Key, n int) *model.Service {
	s := &model.Service{Name: name, Ports: []model.Port{{Protocol: model.TCP, Number: 80}}}
	var endpoints []model.Endpoint
	for i := range n {
		endpoints = append(endpoints, model.Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 80)})
	}
	s.Ports[0].Backends[model.IPv4].Cluster = model.MakeEndpoints(endpoints...)
	return s
}

// connect serves a source on a socket and returns a client of it.
func connect(t *testing.T, s *Server) modelpb.LocalStateClient {
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
	return modelpb.NewLocalStateClient(conn)
}

// reader applies what Watch sends.
type reader struct {
	revision uint64
	synced   bool
	node     *modelpb.Node
	services map[string]*modelpb.Service
	messages int
}

func (r *reader) apply(m *modelpb.WatchResponse) {
	if r.services == nil {
		r.services = make(map[string]*modelpb.Service)
	}
	for _, n := range m.GetRemoved() {
		delete(r.services, n.GetNamespace()+"/"+n.GetName())
	}
	for _, s := range m.GetState().GetServices() {
		r.services[s.GetNamespace()+"/"+s.GetName()] = s
	}
	if n := m.GetState().GetNode(); n != nil {
		r.node = n
	}
	r.messages++
	if m.GetSynced() {
		r.synced, r.revision = true, m.GetState().GetRevision()
	}
}

// equal compares what a reader has with the source.
func (r *reader) equal(t *testing.T, src *fakeSource) {
	t.Helper()
	state := src.State(nil)
	want := state.Proto()
	for i, to := range want.GetServices() {
		to.Outcome = state.Outcomes[i].Proto()
	}
	if len(r.services) != len(want.GetServices()) {
		t.Errorf("the reader has %d Services, want %d", len(r.services), len(want.GetServices()))
	}
	for _, s := range want.GetServices() {
		if got := r.services[s.GetNamespace()+"/"+s.GetName()]; !proto.Equal(got, s) {
			t.Errorf("service %s/%s is %v, want %v", s.GetNamespace(), s.GetName(), got, s)
		}
	}
	if !proto.Equal(r.node, want.GetNode()) {
		t.Errorf("node %v, want %v", r.node, want.GetNode())
	}
}

// TestWatchFollows changes the state at random while a reader follows it, which in
// the end has what the source has.
func TestWatchFollows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	src := newFakeSource()
	src.node = model.Node{Known: true, Name: "n1"}
	s := New(src)
	for i := range 20 {
		src.set(s, fmt.Sprint("s", i), 3*maxEndpoints/20)
	}
	stream, err := connect(t, s).Watch(t.Context(), &modelpb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var r reader
	for !r.synced {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		r.apply(m)
	}
	if r.messages < 3 {
		t.Errorf("the state came in %d messages, want at least 3", r.messages)
	}
	r.equal(t, src)
	for range 2000 {
		src.set(s, fmt.Sprint("s", rng.IntN(30)), rng.IntN(8)-2)
	}
	src.mu.Lock()
	src.revision++
	src.node.Zone = "z"
	src.node.Addresses[model.IPv4] = netip.MustParseAddr("192.0.2.1")
	last, node := src.revision, src.node
	s.Changed(&model.Changes{Node: &node})
	src.mu.Unlock()
	read := func(done func() bool) {
		t.Helper()
		for !done() {
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			r.apply(m)
		}
		r.equal(t, src)
	}
	read(func() bool { return r.revision >= last })
	// Outcomes change without the model.
	src.set(s, "outcome", 1)
	read(func() bool { return r.services["default/outcome"] != nil })
	key := model.Key{Namespace: "default", Name: "outcome"}
	src.mu.Lock()
	src.outcomes[key] = publish.Outcome{State: publish.Refused, Revision: 7, Since: time.Unix(1, 0), Retry: time.Unix(2, 0), Reason: errors.New("no room")}
	src.mu.Unlock()
	s.OutcomesChanged([]model.Key{key})
	read(func() bool { return r.services["default/outcome"].GetOutcome().GetReason() == "no room" })
	o := r.services["default/outcome"].GetOutcome()
	if o.GetState() != outcomepb.State_STATE_REFUSED || o.GetRevision() != 7 || o.GetSince().GetSeconds() != 1 || o.GetRetry().GetSeconds() != 2 {
		t.Errorf("the outcome is %v", o)
	}
}

// TestWatchOne follows a single Service from before it exists until it is gone.
func TestWatchOne(t *testing.T) {
	src := newFakeSource()
	s := New(src)
	s.Changed(&model.Changes{})
	stream, err := connect(t, s).Watch(t.Context(), &modelpb.WatchRequest{Namespace: "default", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	var r reader
	next := func() {
		t.Helper()
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		r.apply(m)
	}
	if next(); !r.synced || len(r.services) != 0 {
		t.Fatalf("at first %v", r.services)
	}
	src.set(s, "b", 1)
	src.set(s, "a", 2)
	if next(); len(r.services) != 1 || len(r.services["default/a"].GetPorts()[0].GetIpv4().GetCluster()) != 2 {
		t.Fatalf("after a change %v", r.services)
	}
	src.set(s, "a", -1)
	if next(); len(r.services) != 0 {
		t.Fatalf("after the end %v", r.services)
	}
}

// TestWatchOnce asks for the state alone, before and after it is known.
func TestWatchOnce(t *testing.T) {
	src := newFakeSource()
	s := New(src)
	c := connect(t, s)
	for name, tt := range map[string]struct {
		req   *modelpb.WatchRequest
		known bool
		want  codes.Code
	}{
		"not known yet": {req: &modelpb.WatchRequest{Once: true}, want: codes.Unavailable},
		"half a name":   {req: &modelpb.WatchRequest{Name: "a"}, want: codes.InvalidArgument},
	} {
		stream, err := c.Watch(t.Context(), tt.req)
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != tt.want {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	src.set(s, "a", 1)
	stream, err := c.Watch(t.Context(), &modelpb.WatchRequest{Namespace: "default", Name: "b", Once: true})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.NotFound {
		t.Errorf("a Service that does not exist: %v", err)
	}
	if stream, err = c.Watch(t.Context(), &modelpb.WatchRequest{Once: true}); err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv()
	if err != nil || len(m.GetState().GetServices()) != 1 || m.GetCounters().GetServiceEvents() != 7 || !m.GetSynced() {
		t.Errorf("state %v, error %v", m, err)
	}
	if _, err = stream.Recv(); err == nil {
		t.Error("the call goes on after the state")
	}
}
