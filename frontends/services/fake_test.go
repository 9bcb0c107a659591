package services

import (
	"context"
	"errors"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// fakeAggregator keeps the elements that were published, and refuses updates as
// it is told.
type fakeAggregator struct {
	weftv1.UnimplementedAggregatorServer
	socket string
	server *grpc.Server

	mu sync.Mutex
	// refuse judges what an update would lead to: set name and key to value.
	refuse   func(elements map[string]string) []*weftv1.Violation
	elements map[string]string
	revision uint64
	// updates are "snapshot" and "patch" in the order in which they came.
	updates []string
}

// newFake listens on a socket of its own.
func newFake(t *testing.T) *fakeAggregator {
	t.Helper()
	f := &fakeAggregator{socket: filepath.Join(t.TempDir(), "weft.sock"), elements: make(map[string]string)}
	f.listen(t)
	return f
}

func (f *fakeAggregator) listen(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	f.server = srv
	weftv1.RegisterAggregatorServer(srv, f)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Stop(); <-done })
}

// Get returns the elements, if there are any, all of them in maps.
func (f *fakeAggregator) Get(context.Context, *weftv1.GetRequest) (*weftv1.GetResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.elements) == 0 {
		return nil, status.Error(codes.NotFound, "no such fragment")
	}
	out := &weftv1.Fragment{Name: render.Fragment}
	for _, k := range slices.Sorted(maps.Keys(f.elements)) {
		head, key, _ := strings.Cut(k, " element ")
		words := strings.Fields(head)
		if n := len(out.Tables); n == 0 || out.Tables[n-1].GetFamily() != words[1] {
			out.Tables = append(out.Tables, &weftv1.Table{Family: words[1], Name: render.Table})
		}
		t := out.Tables[len(out.Tables)-1]
		t.Maps = append(t.Maps, &weftv1.Set{Name: words[4], Elements: []*weftv1.Element{{Key: key, Value: f.elements[k]}}})
	}
	return &weftv1.GetResponse{Fragment: out}, nil
}

func (f *fakeAggregator) Publish(stream grpc.BidiStreamingServer[weftv1.PublishRequest, weftv1.PublishResponse]) error {
	parts := make(map[string]string)
	for {
		req, err := stream.Recv()
		if err != nil {
			return nil
		}
		if s := req.GetSnapshot(); s != nil {
			add(parts, s)
			if req.GetMore() {
				continue
			}
		}
		resp := f.update(req, parts)
		clear(parts)
		if err := stream.Send(resp); err != nil {
			return nil
		}
	}
}

// add adds the elements of a snapshot.
func add(to map[string]string, s *weftv1.Fragment) {
	for _, t := range s.GetTables() {
		for _, sets := range [][]*weftv1.Set{t.GetSets(), t.GetMaps()} {
			for _, set := range sets {
				for _, e := range set.GetElements() {
					to[object(t.GetFamily(), set.GetName(), e.GetKey())] = e.GetValue()
				}
			}
		}
	}
}

func object(family, set, key string) string {
	return "table " + family + " weft map " + set + " element " + key
}

func (f *fakeAggregator) update(req *weftv1.PublishRequest, parts map[string]string) *weftv1.PublishResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, kind := maps.Clone(parts), "snapshot"
	if p := req.GetPatch(); p != nil {
		next, kind = maps.Clone(f.elements), "patch"
		for _, t := range p.GetTables() {
			for _, e := range t.GetElements() {
				for _, k := range e.GetRemove() {
					delete(next, object(t.GetFamily(), e.GetSet(), k))
				}
				for _, el := range e.GetAdd() {
					next[object(t.GetFamily(), e.GetSet(), el.GetKey())] = el.GetValue()
				}
			}
		}
	}
	f.updates = append(f.updates, kind)
	resp := &weftv1.PublishResponse{Id: req.GetId()}
	if f.refuse != nil {
		if v := f.refuse(next); v != nil {
			resp.Result = &weftv1.PublishResponse_Rejected{Rejected: &weftv1.Rejected{Violations: v}}
			return resp
		}
	}
	f.elements = next
	f.revision++
	resp.Result = &weftv1.PublishResponse_Committed{Committed: &weftv1.Committed{Revision: f.revision}}
	return resp
}

// judge changes how updates are judged.
func (f *fakeAggregator) judge(refuse func(map[string]string) []*weftv1.Violation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

// served returns the keys of the map services, sorted.
func (f *fakeAggregator) served() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for k := range f.elements {
		if rest, ok := strings.CutPrefix(k, object("ip", "services", "")); ok && strings.Contains(rest, "tcp") {
			out = append(out, strings.TrimSuffix(rest, " . tcp . 80"))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (f *fakeAggregator) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.updates)
}

// poisoned refuses every update with one of these endpoints, by name or not.
func poisoned(named bool, values ...string) func(map[string]string) []*weftv1.Violation {
	return func(elements map[string]string) []*weftv1.Violation {
		for _, k := range slices.Sorted(maps.Keys(elements)) {
			if !slices.Contains(values, elements[k]) {
				continue
			}
			v := &weftv1.Violation{Message: "operation not supported", Reason: weftv1.Reason_REASON_KERNEL}
			if named {
				v.Object = k
			}
			return []*weftv1.Violation{v}
		}
		return nil
	}
}

var errStopped = errors.New("stopped by the test")

// run runs a frontend until the test ends; ended gives Run's error.
func run(t *testing.T, cfg Config) (f *Frontend, ended <-chan error) {
	t.Helper()
	return runAt(t, cfg, -1)
}

// runAt is run with a least time between two updates.
func runAt(t *testing.T, cfg Config, period time.Duration) (f *Frontend, ended <-chan error) {
	t.Helper()
	cfg.NodeName, cfg.MinSyncPeriod = "node-1", period
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f, start(t, f)
}

// runWithSource runs a frontend and its source until one of them fails.
func runWithSource(ctx context.Context, f *Frontend) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.cfg.Source.Run(ctx) })
	g.Go(func() error { return f.Run(ctx) })
	return g.Wait()
}

// start runs a frontend until the test ends; the channel gives Run's error.
func start(t testing.TB, f *Frontend) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	done, out := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		out <- runWithSource(ctx, f)
	}()
	t.Cleanup(func() { cancel(errStopped); <-done })
	return out
}
