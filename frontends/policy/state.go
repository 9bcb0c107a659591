package policy

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/localstate"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/source"
)

// maxFound limits the changes that readers find while no update is answered.
const maxFound = 100

// state is the model, and its uncommitted events.
type state struct {
	backlog *publish.Backlog
	// outcome says whether a policy is in force, degraded why commits fail; the lock is held.
	outcome  func(model.PolicyID) publish.Outcome
	want     func(...model.PolicyID)
	degraded func() error

	mu      sync.Mutex // the model's lock, taken after those of the source and links, before the others
	model   *model.Model
	commits commits
	// Changes found by a reader, unknown to the publisher.
	found     []model.Changes
	refreshed func(*model.Changes) // called under the lock
	pods      carried
}

// apply takes the lock once, so that a refresh never sees half of a batch. Events are counted by
// resource; dirty means that the model may have changed.
func (s *state) apply(events []source.Event) (counts map[string]int, dirty bool) {
	counts = make(map[string]int)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		e.Apply()
		counts[e.Resource()]++
	}
	if dirty = s.model.Dirty(); dirty && len(events) > 0 {
		s.backlog.Add(counts)
		s.commits.arrive()
	}
	return counts, dirty
}

// change applies a change without a source. committed is closed once a commit has the present
// state.
func (s *state) change(kind string, apply func(*model.Model)) (committed <-chan struct{}, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	apply(s.model)
	if dirty = s.model.Dirty(); dirty {
		s.backlog.Add(map[string]int{kind: 1})
		s.commits.arrive()
	}
	return s.commits.wait(), dirty
}

func read[T any](s *state, f func(*model.Model) T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(s.model)
}

func (s *state) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits.answer()
}

// refresh returns the changes since the last call, and counts them as taken.
func (s *state) refresh() []model.Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.find()
	s.backlog.Take()
	s.commits.take()
	out := s.found
	s.found = nil
	// Since a reader found these, a commit of older values may have come.
	for i := range out {
		s.note(&out[i])
	}
	return out
}

func (s *state) note(c *model.Changes) {
	for _, p := range c.Policies {
		s.want(changeOf(p).Key)
	}
	for _, p := range c.Pods {
		s.pods.want(cmp.Or(p.New, p.Old).UID, p.New != nil)
	}
}

// ahead returns objects found by a reader, without an update.
func (s *state) ahead() (pods map[types.UID]bool, policies map[model.PolicyID]bool) {
	pods, policies = make(map[types.UID]bool), make(map[model.PolicyID]bool)
	for i := range s.found {
		for _, p := range s.found[i].Policies {
			policies[changeOf(p).Key] = true
		}
		for _, p := range s.found[i].Pods {
			pods[cmp.Or(p.New, p.Old).UID] = true
		}
	}
	return pods, policies
}

// An object is not in force if a reader has found a newer value.
func unless(ahead bool, o publish.Outcome) publish.Outcome {
	if ahead && o.State == publish.InForce {
		o.State = publish.Wanted
	}
	return o
}

// find refreshes the model and adds the changes to found. The lock is held.
func (s *state) find() {
	c := s.model.Refresh()
	s.note(&c)
	s.refreshed(&c)
	if !c.Empty() {
		s.found = append(s.found, c)
	}
}

// committed records a commit for the pods of all refreshes.
func (s *state) committed(revision uint64, since time.Time, waits func(types.UID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods.commit(revision, since, waits)
}

// policy returns nil if the policy applies to no local pod.
func (s *state) policy(id model.PolicyID) *model.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.found {
		for _, p := range s.found[i].Policies {
			if changeOf(p).Key == id {
				return p.Old
			}
		}
	}
	return s.model.Policy(id)
}

// State implements localstate.Source.
func (s *state) State() localstate.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backlog.Behind() && len(s.found) < maxFound {
		s.find()
	}
	podsAhead, policiesAhead := s.ahead()
	all := s.model.Snapshot()
	out := localstate.State{Node: all.Node, Sets: all.Sets, Stats: s.model.Stats()}
	degraded := s.degraded()
	for _, p := range all.Pods {
		out.Pods = append(out.Pods, localstate.PodState{Pod: p, Outcome: unless(podsAhead[p.UID], s.pods.outcome(p.UID, degraded))})
	}
	for _, p := range all.Policies {
		out.Policies = append(out.Policies, localstate.PolicyState{PolicyState: p, Outcome: unless(policiesAhead[p.ID], s.outcome(p.ID))})
	}
	slices.SortFunc(out.Policies, func(a, b localstate.PolicyState) int { return compareDecision(a.Policy, b.Policy) })
	return out
}

func compareDecision(a, b *model.Policy) int {
	if a.ID.Tier == b.ID.Tier && a.Priority != b.Priority {
		return int(a.Priority) - int(b.Priority)
	}
	return model.ComparePolicies(a.ID, b.ID)
}
