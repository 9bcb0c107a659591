package services

import (
	"net/netip"
	"strings"
	"sync"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source"
)

// The resources whose events are counted as kube-proxy does.
const (
	serviceEvents = "services"
	sliceEvents   = "endpointslices"
)

// kindOf returns the kind of a resource, as the label of a metric.
func kindOf(resource string) string { return strings.TrimSuffix(resource, "s") }

// state is the model, and the events that it has and no commit does. It implements
// localstate.Source.
type state struct {
	backlog *publish.Backlog
	// outcome says whether a Service is in force. It is called under the lock.
	outcome func(model.Key) publish.Outcome
	// mu is held for a batch of events, or for a refresh.
	mu    sync.Mutex
	model *model.Model
}

// apply applies a batch of events under one lock, so that no refresh sees half of it.
// It counts them by resource, and reports whether anything may have changed, and whether
// load balancers may send new traffic to the node.
func (s *state) apply(events []source.Event) (counts map[string]int, dirty, eligible bool) {
	counts = make(map[string]int)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		e.Apply()
		counts[e.Resource()]++
	}
	if dirty = s.model.Dirty(); dirty && len(events) > 0 {
		s.backlog.Add(counts)
	}
	return counts, dirty, s.model.NodeEligible()
}

// refresh returns what changed, which the backlog then counts as taken.
func (s *state) refresh(changed func(*model.Changes, uint64)) model.Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.model.Refresh()
	s.backlog.Take()
	changed(&c, s.model.Stats().Revision)
	return c
}

// service returns a Service as it was last refreshed, nil if there is none.
func (s *state) service(key model.Key) *model.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Service(key)
}

// Candidates implements localstate.Source.
func (s *state) Candidates(key model.Key) (all []model.Candidate, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Candidates(key)
}

// Find implements localstate.Source.
func (s *state) Find(addr netip.Addr, protocol model.Protocol, port uint16) (key model.Key, name string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Find(addr, protocol, port)
}

// State implements localstate.Source.
func (s *state) State(names func() []model.Key) localstate.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := localstate.State{Stats: s.model.Stats()}
	if names == nil {
		out.Snapshot = s.model.Snapshot()
	} else {
		out.Snapshot = s.model.Select(names())
	}
	for _, svc := range out.Services {
		out.Outcomes = append(out.Outcomes, s.outcome(svc.Name))
	}
	return out
}
