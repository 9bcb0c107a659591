package aggregator

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/views"
)

// statuses has the status of every fragment as of the last commit. The writer
// updates it; any goroutine may read it.
type statuses struct {
	// revision is the number of the last commit.
	revision atomic.Uint64

	mu sync.RWMutex
	// byKey has immutable values.
	byKey map[desired.Key]*weftv1.FragmentStatus
	// usage has what each publisher holds, without publishers that hold nothing.
	usage map[string]publisherUsage
	// paths is Paths.Version as of the last commit.
	paths uint64
}

// publisherUsage is what a publisher holds.
type publisherUsage struct {
	desired.Usage
	// worst and every are Paths.PacketTime.
	worst, every int
}

func newStatuses() *statuses {
	return &statuses{byKey: make(map[desired.Key]*weftv1.FragmentStatus), usage: make(map[string]publisherUsage)}
}

// get returns the status of a fragment, or nil.
func (s *statuses) get(key desired.Key) *weftv1.FragmentStatus {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKey[key]
}

// list returns the statuses by publisher and name, and the last revision.
func (s *statuses) list() ([]*weftv1.FragmentStatus, uint64) {
	s.mu.RLock()
	out, revision := slices.Collect(maps.Values(s.byKey)), s.revision.Load()
	s.mu.RUnlock()
	// Not with the lock held, because the writer waits for it.
	slices.SortFunc(out, func(a, b *weftv1.FragmentStatus) int {
		return keyOf(a.GetFragment()).Compare(keyOf(b.GetFragment()))
	})
	return out, revision
}

// adopt lists the fragments of the last run.
func (s *statuses) adopt(state *merge.State, revision uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision.Store(revision)
	for _, f := range views.Fragments(state) {
		s.byKey[f.Key] = fragmentStatus(f, revision, timestamppb.New(now))
		s.measure(state, f.Key.Publisher, true)
	}
}

// measure updates what a publisher holds. What packets pay is only computed again with paths.
func (s *statuses) measure(state *merge.State, publisher string, paths bool) {
	u := s.usage[publisher]
	if u.Usage = state.Usage(publisher); u.Usage == (desired.Usage{}) {
		delete(s.usage, publisher)
		return
	}
	if paths {
		u.worst, u.every = state.Paths.PacketTime(publisher)
	}
	s.usage[publisher] = u
}

// holds returns what a publisher holds.
func (s *statuses) holds(publisher string) publisherUsage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.usage[publisher]
}

// committed updates the status of fragments after their updates were accepted.
// Changed is true if there was a commit.
func (s *statuses) committed(accepted []*submission, state *merge.State, revision uint64, now time.Time, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision.Store(revision)
	for _, u := range accepted {
		key := u.key()
		f, ok := views.Fragment(state, key)
		s.measure(state, key.Publisher, false)
		if !ok {
			delete(s.byKey, key)
			continue
		}
		st := fragmentStatus(f, revision, timestamppb.New(now))
		if old := s.byKey[key]; old != nil && !changed {
			st.Revision, st.Changed = old.GetRevision(), old.GetChanged()
		}
		s.byKey[key] = st
	}
	// Updates can make packets visit more rules in the chains of other publishers.
	if paths := state.Paths.Version(); s.paths != paths {
		s.paths = paths
		for publisher := range s.usage {
			s.measure(state, publisher, true)
		}
	}
	// Updates can shadow elements of other fragments, or show them again.
	for _, key := range state.TakeShadowChanges() {
		f, ok := views.Fragment(state, key)
		if old := s.byKey[key]; ok && old != nil && old.GetShadowed() != uint64(f.Shadowed) { //nolint:gosec // a count
			st := proto.CloneOf(old)
			st.Shadowed = uint64(f.Shadowed) //nolint:gosec // a count
			s.byKey[key] = st
		}
	}
}

// rejected adds the violations of a rejection to the status of its fragment.
func (s *statuses) rejected(r *RejectedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byKey[r.Fragment]; old != nil {
		st := proto.CloneOf(old)
		st.Violations = r.Violations
		s.byKey[r.Fragment] = st
	}
}

// fragmentStatus converts a status to a message.
func fragmentStatus(f desired.Status, revision uint64, changed *timestamppb.Timestamp) *weftv1.FragmentStatus {
	st := &weftv1.FragmentStatus{
		Fragment: nameOf(f.Key), Priority: f.Priority,
		Lifetime: admission.EffectiveLifetime(weftv1.Lifetime(f.Lifetime)),
		State:    weftv1.FragmentStatus_STATE_COMMITTED, Revision: revision, Changed: changed, ExpireTime: expireTime(f.Expires),
		Chains: uint32(f.Chains), Rules: uint32(f.Rules), Sets: uint32(f.Sets), Objects: uint32(f.Objects), //nolint:gosec // counts
		Elements: uint64(f.Elements), Shadowed: uint64(f.Shadowed), //nolint:gosec // counts
	}
	if f.Adopted {
		st.State = weftv1.FragmentStatus_STATE_ADOPTED
	}
	return st
}
