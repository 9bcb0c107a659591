package publishtest

import (
	"context"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
)

// Aggregator keeps published elements and rules.
type Aggregator struct {
	weftv1.UnimplementedPublisherServer
	weftv1.UnimplementedInspectServer
	Socket string
	server *grpc.Server

	mu       sync.Mutex
	judge    Judge
	elements map[string]string
	// by chain, such as "chain ip weft input"
	chains   map[string]string
	gate     chan struct{}
	revision uint64
	updates  []string
}

// Judge returns the violations of an update, or nil. It receives the resulting element values, keyed by
// Element, and the rules of all chains.
type Judge func(elements map[string]string) []*weftv1.Violation

// New starts an aggregator for the duration of the test.
func New(t testing.TB) *Aggregator {
	t.Helper()
	f := &Aggregator{Socket: filepath.Join(t.TempDir(), "weft.sock"), elements: make(map[string]string), chains: make(map[string]string)}
	f.Start(t)
	return f
}

// Stop closes the connections and the socket.
func (f *Aggregator) Stop() { f.server.Stop() }

// Start listens again after Stop.
func (f *Aggregator) Start(t testing.TB) {
	t.Helper()
	l, err := net.Listen("unix", f.Socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	f.server = srv
	weftv1.RegisterPublisherServer(srv, f)
	weftv1.RegisterInspectServer(srv, f)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Stop(); <-done })
}

// GetFragment implements the API method.
func (f *Aggregator) GetFragment(req *weftv1.GetFragmentRequest, stream grpc.ServerStreamingServer[weftv1.GetFragmentResponse]) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.elements) == 0 {
		return status.Error(codes.NotFound, "no such fragment")
	}
	out := &weftv1.Fragment{Name: req.GetFragment().GetName()}
	for _, k := range slices.Sorted(maps.Keys(f.elements)) {
		of := nametest.Parse(k)
		if n := len(out.Tables); n == 0 || out.Tables[n-1].GetFamily() != of.GetFamily() {
			out.Tables = append(out.Tables, &weftv1.Table{Family: of.GetFamily(), Name: of.GetTable()})
		}
		t := out.Tables[len(out.Tables)-1]
		t.Maps = append(t.Maps, &weftv1.Set{Name: of.GetName(), Elements: []*weftv1.Element{{Key: of.GetKey(), Value: f.elements[k]}}})
	}
	return stream.Send(&weftv1.GetFragmentResponse{Fragment: out})
}

// Publish implements the API method.
func (f *Aggregator) Publish(stream grpc.BidiStreamingServer[weftv1.PublishRequest, weftv1.PublishResponse]) error {
	parts, chains, text := make(map[string]string), make(map[string]string), convert.Text()
	for {
		req, err := stream.Recv()
		if err != nil {
			return nil
		}
		if req, err = text(req); err != nil {
			return err
		}
		if s := req.GetSnapshot(); s != nil {
			add(parts, chains, s)
			if req.GetMore() {
				continue
			}
		}
		f.wait(stream.Context())
		resp := f.update(req, parts, chains)
		clear(parts)
		clear(chains)
		if err := stream.Send(resp); err != nil {
			return nil
		}
	}
}

// Hold blocks updates until release is called.
func (f *Aggregator) Hold() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gate := make(chan struct{})
	f.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

func (f *Aggregator) wait(ctx context.Context) {
	f.mu.Lock()
	gate := f.gate
	f.mu.Unlock()
	if gate == nil {
		return
	}
	select {
	case <-gate:
	case <-ctx.Done():
	}
}

func addChains(to map[string]string, family, table string, chains []*weftv1.Chain) {
	for _, c := range chains {
		var rules []string
		for _, r := range c.GetRules() {
			rules = append(rules, r.GetText()+" # "+r.GetComment())
		}
		to[chainName(family, table, c.GetName())] = strings.Join(rules, "\n")
	}
}

func chainName(family, table, chain string) string {
	return "chain " + family + " " + table + " " + chain
}

// Plan implements the API method for one fragment.
func (f *Aggregator) Plan(req *weftv1.PlanRequest, stream grpc.ServerStreamingServer[weftv1.PlanResponse]) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, resp := make(map[string]string), &weftv1.PlanResponse{}
	add(all, all, req.GetFragments()[0])
	f.updates = append(f.updates, "plan")
	if f.judge != nil {
		if v := f.judge(all); v != nil {
			resp.Rejections = []*weftv1.Rejection{{Violations: v}}
		}
	}
	return stream.Send(resp)
}

func add(to, chains map[string]string, s *weftv1.Fragment) {
	for _, t := range s.GetTables() {
		addChains(chains, t.GetFamily(), t.GetName(), t.GetChains())
		for _, sets := range [][]*weftv1.Set{t.GetSets(), t.GetMaps()} {
			for _, set := range sets {
				for _, e := range set.GetElements() {
					to[Element(t.GetFamily(), t.GetName(), set.GetName(), e.GetKey())] = e.GetValue()
				}
			}
		}
	}
}

// Element names an element as violations do.
func Element(family, table, set, key string) string {
	return "element " + family + " " + table + " " + set + " { " + key + " }"
}

func (f *Aggregator) update(req *weftv1.PublishRequest, parts, chains map[string]string) *weftv1.PublishResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, nextChains, kind := maps.Clone(parts), maps.Clone(chains), "snapshot"
	if p := req.GetPatch(); p != nil {
		next, nextChains, kind = maps.Clone(f.elements), maps.Clone(f.chains), "patch"
		for _, t := range p.GetTables() {
			for _, name := range t.GetDeleteChains() {
				delete(nextChains, chainName(t.GetFamily(), t.GetName(), name))
			}
			addChains(nextChains, t.GetFamily(), t.GetName(), t.GetPutChains())
			for _, e := range t.GetElements() {
				for _, k := range e.GetRemove() {
					delete(next, Element(t.GetFamily(), t.GetName(), e.GetSet(), k))
				}
				for _, el := range e.GetAdd() {
					next[Element(t.GetFamily(), t.GetName(), e.GetSet(), el.GetKey())] = el.GetValue()
				}
			}
		}
	}
	f.updates = append(f.updates, kind)
	resp := &weftv1.PublishResponse{Id: req.GetId()}
	if f.judge != nil {
		all := maps.Clone(nextChains)
		maps.Copy(all, next)
		if v := f.judge(all); v != nil {
			resp.Result = &weftv1.PublishResponse_Rejected{Rejected: &weftv1.Rejected{Violations: v}}
			return resp
		}
	}
	f.elements, f.chains = next, nextChains
	f.revision++
	resp.Result = &weftv1.PublishResponse_Committed{Committed: &weftv1.Committed{Revision: f.revision}}
	return resp
}

// Judge sets the judge of updates; nil accepts all.
func (f *Aggregator) Judge(judge Judge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judge = judge
}

// Elements returns the elements, keyed by Element.
func (f *Aggregator) Elements() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.elements)
}

// Chains returns a copy of the rules by chain.
func (f *Aggregator) Chains() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.chains)
}

// Clear forgets the elements and chains.
func (f *Aggregator) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.elements)
	clear(f.chains)
}

// Updates returns "snapshot", "patch" and "plan" in order.
func (f *Aggregator) Updates() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.updates)
}
