package services

import (
	"cmp"
	"net/netip"
	"strings"
	"sync"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source"
)

// counted as in kube-proxy
const (
	serviceEvents = "services"
	sliceEvents   = "endpointslices"
)

// of the kubelet
const podEvents = "pod"

func kindOf(resource string) string { return strings.TrimSuffix(resource, "s") }

type state struct {
	backlog *publish.Backlog
	// called under the lock
	outcome func(model.Key) publish.Outcome
	// records a Service's change; called under the lock
	want func(...model.Key)
	// the model's lock, taken after the source's and before the frontend's others
	mu    sync.Mutex
	model *model.Model
	// changes found by a reader and unknown to the publisher, one per Service, indexed by foundAt
	found   model.Changes
	foundAt map[model.Key]int
	// called under the lock, with the model's revision
	refreshed func(*model.Changes, uint64)
}

// apply takes one lock for the batch, for one refresh.
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

// change applies a change that does not come from the source.
func (s *state) change(apply func(*model.Model)) (dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	apply(s.model)
	if dirty = s.model.Dirty(); dirty {
		s.backlog.Add(map[string]int{podEvents: 1})
	}
	return dirty
}

func (s *state) heldOut() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Pods().HeldOut()
}

func (s *state) located() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Located()
}

func (s *state) refresh() model.Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.look()
	s.backlog.Take()
	if s.foundAt == nil {
		return c
	}
	s.join(&c)
	c, s.found, s.foundAt = s.found, model.Changes{}, nil
	// Older values may have been committed since a reader found these.
	s.wantAll(&c)
	return c
}

// look refreshes the model. The lock is held.
func (s *state) look() model.Changes {
	c := s.model.Refresh()
	s.wantAll(&c)
	s.refreshed(&c, s.model.Stats().Revision)
	return c
}

func (s *state) wantAll(c *model.Changes) {
	for i := range c.Services {
		s.want(c.Services[i].Name)
	}
}

func (s *state) join(c *model.Changes) {
	if s.foundAt == nil {
		s.foundAt = make(map[model.Key]int)
	}
	all := &s.found
	for _, svc := range c.Services {
		if at, ok := s.foundAt[svc.Name]; ok {
			all.Services[at].New = svc.New
			continue
		}
		s.foundAt[svc.Name] = len(all.Services)
		all.Services = append(all.Services, svc)
	}
	all.Triggers = append(all.Triggers, c.Triggers[:min(len(c.Triggers), max(0, maxTriggers-len(all.Triggers)))]...)
	all.Node, all.ServiceCIDRs = cmp.Or(c.Node, all.Node), cmp.Or(c.ServiceCIDRs, all.ServiceCIDRs)
}

// service returns a Service as the publisher knows it, or nil.
func (s *state) service(key model.Key) *model.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.foundAt[key]; ok {
		return s.found.Services[at].Old
	}
	return s.model.Service(key)
}

func (s *state) Candidates(key model.Key) (all []model.Candidate, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Candidates(key)
}

func (s *state) Find(addr netip.Addr, protocol model.Protocol, port uint16) (key model.Key, name string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Find(addr, protocol, port)
}

func (s *state) State(names ...model.Key) localstate.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	var out localstate.State
	if names == nil {
		out.Snapshot = s.model.Snapshot()
	} else {
		out.Snapshot = s.model.Select(names)
	}
	for _, svc := range out.Services {
		o := s.outcome(svc.Name)
		if _, ahead := s.foundAt[svc.Name]; ahead && o.State == publish.InForce {
			o.State = publish.Wanted
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	return out
}

func (s *state) Stats() model.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	return s.model.Stats()
}

// catchUp refreshes the model for a reader. The lock is held.
func (s *state) catchUp() {
	if s.backlog.Behind() {
		c := s.look()
		s.join(&c)
	}
}
