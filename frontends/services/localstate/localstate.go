package localstate

import (
	"maps"
	"net/netip"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// maxEndpoints bounds the endpoints per response, except for a single larger Service. It keeps messages
// far below gRPC's limit.
const maxEndpoints = 1 << 14

// SocketName is the frontend's own socket in the directory of the aggregator's socket.
const SocketName = "services.sock"

var errUnknown = status.Error(codes.Unavailable, "not all Services are known yet: the source has not delivered everything that exists")

// State is the model's state with its Services' outcomes.
type State struct {
	model.Snapshot
	Stats model.Stats
	// Outcomes has one entry per Service of the snapshot.
	Outcomes []publish.Outcome
}

// Source provides the state.
type Source interface {
	// State returns the Services that names returns, or all if names is nil, at one instant. Unknown
	// names are ignored. It calls names under its lock, so names can return the Services changed since
	// the last call without missing any.
	State(names func() []model.Key) State
	// Candidates is model.Model.Candidates.
	Candidates(key model.Key) (all []model.Candidate, ok bool)
	// Find is model.Model.Find.
	Find(addr netip.Addr, protocol model.Protocol, port uint16) (key model.Key, name string, ok bool)
}

// Server implements modelpb.LocalStateServer.
type Server struct {
	modelpb.UnimplementedLocalStateServer
	source Source

	// closed by the first Changed
	known chan struct{}
	begin sync.Once

	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

// New returns a server of a source.
func New(source Source) *Server {
	return &Server{source: source, known: make(chan struct{}), watchers: make(map[*watcher]struct{})}
}

// Register registers the service with a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { modelpb.RegisterLocalStateServer(r, s) }

type watcher struct {
	// the requested Service, or nil for all
	only *model.Key
	// buffered, capacity one
	nudge chan struct{}

	mu       sync.Mutex
	services map[model.Key]struct{}
	node     bool
}

// Changed passes a refresh's changes to the readers. Call it under the lock of Source.State. The first
// call, even without changes, means that everything is known.
func (s *Server) Changed(c *model.Changes) {
	s.begin.Do(func() { close(s.known) })
	if c.Empty() {
		return
	}
	names := make([]model.Key, len(c.Services))
	for i := range c.Services {
		names[i] = c.Services[i].Name
	}
	s.mark(names, c.Node != nil || c.ServiceCIDRs != nil)
}

// OutcomesChanged tells readers about changed outcomes.
func (s *Server) OutcomesChanged(names []model.Key) { s.mark(names, false) }

func (s *Server) mark(names []model.Key, node bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		w.mark(names, node)
	}
}

func (w *watcher) mark(names []model.Key, node bool) {
	w.mu.Lock()
	marked := node
	w.node = w.node || node
	for _, name := range names {
		if w.only == nil || *w.only == name {
			w.services[name], marked = struct{}{}, true
		}
	}
	w.mu.Unlock()
	if !marked {
		return
	}
	select {
	case w.nudge <- struct{}{}:
	default:
	}
}

// take returns the Services to send, sorted.
func (w *watcher) take() (names []model.Key, node bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, node = slices.SortedFunc(maps.Keys(w.services), model.CompareKeys), w.node
	clear(w.services)
	w.node = false
	return names, node
}

// Watch implements modelpb.LocalStateServer.
func (s *Server) Watch(req *modelpb.WatchRequest, to grpc.ServerStreamingServer[modelpb.WatchResponse]) error {
	w, err := newWatcher(req)
	if err != nil {
		return err
	}
	select {
	case <-s.known:
	default:
		if req.GetOnce() {
			return errUnknown
		}
		select {
		case <-s.known:
		case <-to.Context().Done():
			return status.FromContextError(to.Context().Err()).Err()
		}
	}
	// Registering before reading the state may send a change twice but never misses one.
	s.mu.Lock()
	s.watchers[w] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}()
	var names func() []model.Key
	if w.only != nil {
		names = func() []model.Key { return []model.Key{*w.only} }
	}
	state := s.source.State(names)
	if w.only != nil && len(state.Services) == 0 && req.GetOnce() {
		return status.Errorf(codes.NotFound, "no Service %s has rules on this node", w.only)
	}
	for changed, node := []model.Key(nil), true; ; {
		if err := send(to, state, changed, node); err != nil || req.GetOnce() {
			return err
		}
		changed, node = nil, false
		for len(changed) == 0 && !node {
			select {
			case <-to.Context().Done():
				return status.FromContextError(to.Context().Err()).Err()
			case <-w.nudge:
			}
			state = s.source.State(func() []model.Key {
				changed, node = w.take()
				return changed
			})
		}
	}
}

func newWatcher(req *modelpb.WatchRequest) (*watcher, error) {
	w := &watcher{nudge: make(chan struct{}, 1), services: make(map[model.Key]struct{})}
	switch {
	case req.GetNamespace() == "" && req.GetName() == "":
	case req.GetNamespace() == "" || req.GetName() == "":
		return nil, status.Error(codes.InvalidArgument, "one Service is named by its namespace and its name: give both, or none for all Services")
	default:
		w.only = &model.Key{Namespace: req.GetNamespace(), Name: req.GetName()}
	}
	return w, nil
}

// send sends a state in parts. Names without a Service are sent as deleted.
func send(to grpc.ServerStreamingServer[modelpb.WatchResponse], state State, names []model.Key, node bool) error {
	all, outcomes := state.Services, state.Outcomes
	removed := gone(names, all)
	for first := true; ; first = false {
		part := state.Snapshot
		n := fit(all)
		part.Services, all = all[:n], all[n:]
		out := &modelpb.WatchResponse{State: part.Proto()}
		for i, to := range out.GetState().GetServices() {
			to.Outcome = outcomes[i].Proto()
		}
		outcomes = outcomes[n:]
		if !node || !first {
			out.State.Node, out.State.ServiceCidrs = nil, nil
		}
		if first {
			out.Removed = removed
		}
		if len(all) == 0 {
			out.Synced, out.Counters = true, countersProto(&state.Stats)
		}
		if err := to.Send(out); err != nil || out.Synced {
			return err
		}
	}
}

// gone returns the names without a Service. Both are sorted.
func gone(names []model.Key, services []*model.Service) (out []*modelpb.ServiceName) {
	for _, name := range names {
		if len(services) > 0 && services[0].Name == name {
			services = services[1:]
			continue
		}
		out = append(out, &modelpb.ServiceName{Namespace: name.Namespace, Name: name.Name})
	}
	return out
}

func fit(services []*model.Service) int {
	weight := 0
	for i, s := range services {
		for j := range s.Ports {
			for _, b := range s.Ports[j].Backends {
				weight += 1 + b.Cluster.Len() + b.Local.Len() + b.Draining.Len()
			}
		}
		if weight > maxEndpoints && i > 0 {
			return i
		}
	}
	return len(services)
}

func countersProto(s *model.Stats) *modelpb.Counters {
	return &modelpb.Counters{
		ServiceEvents: s.ServiceEvents, SliceEvents: s.SliceEvents, NodeEvents: s.NodeEvents, ServiceCidrEvents: s.ServiceCIDREvents,
		ServiceChanges: s.ServiceChanges, NodeChanges: s.NodeChanges, Revisions: s.Revision, Skipped: s.Skipped,
		Conflicts: uint64(max(0, s.Conflicts)), Services: uint64(max(0, s.Services)), Slices: uint64(max(0, s.Slices)),
	}
}
