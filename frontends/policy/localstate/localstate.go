package localstate

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/localstate/statepb"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
)

// SocketName is the name of the frontend's own socket, in the directory of the aggregator's.
const SocketName = "policy.sock"

// State is the state that a node enforces, or the requested part.
type State struct {
	Node     model.Node
	Pods     []Pod
	Policies []Policy
	Sets     []Set
	Counters Counters
}

// Pod is a pod of this node.
type Pod struct {
	*model.Pod
	Outcome publish.Outcome
}

// Policy is a policy that applies to pods of this node.
type Policy struct {
	*model.Policy
	Pods    int
	Outcome publish.Outcome
	// Problems are the invalid parts of the policy.
	Problems []string
}

// Set is a set that rules name.
type Set struct {
	*model.Set
	Size    int
	Outcome publish.Outcome
	// Members is nil unless requested.
	Members []model.Member
}

// Counters are numbers of the model. Pods, Namespaces and Policies count the whole cluster.
type Counters struct {
	Revision                              uint64
	Pods, Namespaces, Policies, LocalPods int
}

// Names name objects of a State.
type Names struct {
	Node     bool
	Pods     []types.UID
	Policies []model.PolicyID
	Sets     []model.SetID
}

func (n *Names) empty() bool {
	return !n.Node && len(n.Pods) == 0 && len(n.Policies) == 0 && len(n.Sets) == 0
}

// Source is the state to serve.
type Source interface {
	// State returns the objects that names returns, or all if names is nil: pods and sets sorted,
	// policies in the order of decision. It ignores unknown names. It calls names under its lock,
	// so that names can return the changes since the last call without a gap. Sets have their
	// members if members is true.
	State(names func() *Names, members bool) State
}

// Server implements statepb.LocalStateServer.
type Server struct {
	statepb.UnimplementedLocalStateServer
	source  Source
	dropLog uint32

	known chan struct{} // closed by the first call of Changed
	begin sync.Once

	mu       sync.Mutex
	watchers map[*watcher]struct{}
}

// New returns a server of a source. dropLog is the number of dropped packets per second that are
// logged.
func New(source Source, dropLog int) *Server {
	return &Server{source: source, dropLog: size(dropLog), known: make(chan struct{}), watchers: make(map[*watcher]struct{})}
}

// Register registers the service with a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { statepb.RegisterLocalStateServer(r, s) }

type watcher struct {
	// nudge has room for one signal to send.
	nudge chan struct{}

	mu       sync.Mutex
	node     bool
	pods     map[types.UID]struct{}
	policies map[model.PolicyID]struct{}
	sets     map[model.SetID]struct{}
}

// Changed passes the changes of a refresh to the readers. Call it under the lock of Source.State.
// The first call, even without changes, means that all objects are known.
func (s *Server) Changed(c *model.Changes) {
	s.begin.Do(func() { close(s.known) })
	if c.Empty() {
		return
	}
	s.each(func(w *watcher) { w.mark(c) })
}

// OutcomesChanged tells the readers that the outcomes of objects have changed.
func (s *Server) OutcomesChanged(n *Names) {
	s.each(func(w *watcher) {
		insert(w.pods, n.Pods)
		insert(w.policies, n.Policies)
		insert(w.sets, n.Sets)
	})
}

func insert[K comparable](to map[K]struct{}, keys []K) {
	for _, k := range keys {
		to[k] = struct{}{}
	}
}

// each calls mark under the lock of each reader, and wakes the readers.
func (s *Server) each(mark func(*watcher)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		w.mu.Lock()
		mark(w)
		w.mu.Unlock()
		select {
		case w.nudge <- struct{}{}:
		default:
		}
	}
}

// mark notes the objects of c. A pod also counts for its policies. The lock is held.
func (w *watcher) mark(c *model.Changes) {
	w.node = w.node || c.Node != nil
	for _, p := range c.Pods {
		for _, pod := range []*model.Pod{p.Old, p.New} {
			if pod == nil {
				continue
			}
			w.pods[pod.UID] = struct{}{}
			for _, ids := range pod.Policies {
				for _, id := range ids {
					w.policies[id] = struct{}{}
				}
			}
		}
	}
	for _, p := range c.Policies {
		w.policies[cmp.Or(p.New, p.Old).ID] = struct{}{}
	}
	for _, set := range c.Sets {
		w.sets[cmp.Or(set.New, set.Old).ID] = struct{}{}
	}
}

func (w *watcher) take() *Names {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &Names{
		Node: w.node, Pods: slices.Sorted(maps.Keys(w.pods)), Sets: slices.Sorted(maps.Keys(w.sets)),
		Policies: slices.SortedFunc(maps.Keys(w.policies), model.ComparePolicies),
	}
	w.node = false
	clear(w.pods)
	clear(w.policies)
	clear(w.sets)
	return n
}

// Watch implements statepb.LocalStateServer.
func (s *Server) Watch(req *statepb.WatchRequest, to grpc.ServerStreamingServer[statepb.WatchResponse]) error {
	select {
	case <-s.known:
	default:
		if req.GetOnce() {
			return status.Error(codes.Unavailable, "not all policies are known yet: the source has not delivered everything that exists")
		}
		select {
		case <-s.known:
		case <-to.Context().Done():
			return status.FromContextError(to.Context().Err()).Err()
		}
	}
	w := &watcher{
		nudge: make(chan struct{}, 1), pods: make(map[types.UID]struct{}),
		policies: make(map[model.PolicyID]struct{}), sets: make(map[model.SetID]struct{}),
	}
	// The registration precedes the state, so a change between them is sent twice rather than
	// missed.
	s.mu.Lock()
	s.watchers[w] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}()
	state := s.source.State(nil, req.GetMembers())
	for names := (&Names{Node: true}); ; {
		for _, m := range responses(&state, names, s.dropLog) {
			if err := to.Send(m); err != nil {
				return err
			}
		}
		if req.GetOnce() {
			return nil
		}
		for names = nil; names == nil || names.empty(); {
			select {
			case <-to.Context().Done():
				return status.FromContextError(to.Context().Err()).Err()
			case <-w.nudge:
			}
			state = s.source.State(func() *Names {
				names = w.take()
				return names
			}, req.GetMembers())
		}
	}
}
