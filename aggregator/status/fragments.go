package status

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
	"github.com/weft-proxy/weft/aggregator/message"
)

// Fragments has the status of every fragment as of the last commit.
type Fragments struct {
	Revision atomic.Uint64

	mu sync.RWMutex
	// byKey has immutable values.
	byKey map[desired.Key]*weftv1.FragmentStatus
	// usage omits publishers without content.
	usage map[string]Holding
	// paths is the last measured version of State.Paths.
	paths uint64
}

// Holding is the usage of a publisher.
type Holding struct {
	desired.Usage
	// Worst and Every are State.Paths.PacketTime, in nanoseconds.
	Worst, Every int
}

func NewFragments() *Fragments {
	return &Fragments{byKey: make(map[desired.Key]*weftv1.FragmentStatus), usage: make(map[string]Holding)}
}

// Get may return nil.
func (s *Fragments) Get(key desired.Key) *weftv1.FragmentStatus {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKey[key]
}

// List returns the statuses by publisher and name, and the last revision.
func (s *Fragments) List() ([]*weftv1.FragmentStatus, uint64) {
	s.mu.RLock()
	out, revision := slices.Collect(maps.Values(s.byKey)), s.Revision.Load()
	s.mu.RUnlock()
	// Sort without the lock, because the writer waits for it.
	slices.SortFunc(out, func(a, b *weftv1.FragmentStatus) int {
		return message.Key(a.GetFragment()).Compare(message.Key(b.GetFragment()))
	})
	return out, revision
}

// Adopt lists the fragments of the last run.
func (s *Fragments) Adopt(state *merge.State, revision uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Revision.Store(revision)
	for _, f := range views.Fragments(state) {
		s.byKey[f.Key] = fragmentStatus(f, revision, timestamppb.New(now))
		s.measure(state, f.Key.Publisher, true)
	}
}

func (s *Fragments) measure(state *merge.State, publisher string, paths bool) {
	u := s.usage[publisher]
	if u.Usage = state.Usage(publisher); u.Usage == (desired.Usage{}) {
		delete(s.usage, publisher)
		return
	}
	if paths {
		u.Worst, u.Every = state.Paths.PacketTime(publisher)
	}
	s.usage[publisher] = u
}

// Holds returns the usage of a publisher.
func (s *Fragments) Holds(publisher string) Holding {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.usage[publisher]
}

// Committed updates the status after accepted updates. changed is true if there was a commit.
func (s *Fragments) Committed(keys []desired.Key, state *merge.State, revision uint64, now time.Time, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Revision.Store(revision)
	for _, key := range keys {
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
	// Updates can lengthen packet paths through chains of other publishers.
	if paths := state.Paths.Version(); s.paths != paths {
		s.paths = paths
		for publisher := range s.usage {
			s.measure(state, publisher, true)
		}
	}
	// Updates can shadow or reveal elements of other fragments.
	for _, key := range state.TakeShadowChanges() {
		f, ok := views.Fragment(state, key)
		if old := s.byKey[key]; ok && old != nil && old.GetShadowed() != uint64(f.Shadowed) { //nolint:gosec // a count
			st := proto.CloneOf(old)
			st.Shadowed = uint64(f.Shadowed) //nolint:gosec // a count
			s.byKey[key] = st
		}
	}
}

// Rejected sets the violations until the fragment's next commit.
func (s *Fragments) Rejected(r *admission.RejectedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byKey[r.Fragment]; old != nil {
		st := proto.CloneOf(old)
		st.Violations = r.Violations
		s.byKey[r.Fragment] = st
	}
}

func fragmentStatus(f desired.Status, revision uint64, changed *timestamppb.Timestamp) *weftv1.FragmentStatus {
	st := &weftv1.FragmentStatus{
		Fragment: message.Name(f.Key), Priority: f.Priority,
		Lifetime: admission.EffectiveLifetime(weftv1.Lifetime(f.Lifetime)),
		State:    weftv1.FragmentStatus_STATE_COMMITTED, Revision: revision, Changed: changed, ExpireTime: message.ExpireTime(f.Expires),
		Chains: uint32(f.Chains), Rules: uint32(f.Rules), Sets: uint32(f.Sets), Objects: uint32(f.Objects), //nolint:gosec // counts
		Elements: uint64(f.Elements), Shadowed: uint64(f.Shadowed), //nolint:gosec // counts
	}
	if f.Adopted {
		st.State = weftv1.FragmentStatus_STATE_ADOPTED
	}
	return st
}

// Lapsed counts a fragment's elements after an expiration.
func (s *Fragments) Lapsed(state *merge.State, key desired.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := views.Fragment(state, key)
	if old := s.byKey[key]; ok && old != nil {
		st := proto.CloneOf(old)
		st.Elements = uint64(f.Elements) //nolint:gosec // a count
		s.byKey[key] = st
	}
	s.measure(state, key.Publisher, false)
}

// Orphaned lists stored fragments that are not in force.
func (s *Fragments) Orphaned(orphans map[desired.Key]*weftv1.FragmentStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.byKey, orphans)
}

// Missing returns the publishers not back since the start, in order, and their number of fragments, except
// fragments of sessions.
func (s *Fragments) Missing() (publishers []string, fragments int) {
	all, _ := s.List()
	for _, f := range all {
		if f.GetState() == weftv1.FragmentStatus_STATE_ADOPTED && f.GetLifetime() != weftv1.Lifetime_LIFETIME_SESSION {
			publishers, fragments = append(publishers, f.GetFragment().GetPublisher()), fragments+1
		}
	}
	return slices.Compact(publishers), fragments
}

// Refused returns the first fragment with violations, or nil, and their number.
func (s *Fragments) Refused() (first *weftv1.FragmentStatus, n int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, f := range s.byKey {
		if len(f.GetViolations()) == 0 {
			continue
		}
		if n++; n == 1 || key.Compare(message.Key(first.GetFragment())) < 0 {
			first = f
		}
	}
	return first, n
}
