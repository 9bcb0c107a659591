package aggregator

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// book holds what is known of fragments beside their content: who may patch
// them (the writer's own), and their status (for everybody).
type book struct {
	// claims are the fragments that exist, as of the last Apply.
	claims map[desired.Key]claim
	// journal restores claims at a rollback, the newest last.
	journal []journalEntry
	// version counts changes of what is recorded of claims.
	version uint64
	// left are session fragments without their session.
	left map[desired.Key]bool

	mu       sync.RWMutex
	revision uint64
	// status has immutable values.
	status map[desired.Key]*weftv1.FragmentStatus
}

// claim is who a fragment belongs to.
type claim struct {
	// session sent the last snapshot; nil where that was a unary call, or the
	// stream has ended.
	session *Session
	// snapshot is the serial of that snapshot.
	snapshot uint64
	lifetime weftv1.Lifetime
	priority int32
	// adopted is true until a snapshot arrives after a restart, conntrack
	// while it holds a map whose flows are watched.
	adopted, conntrack bool
	// declared is what the fragment declares; nil while it is adopted.
	declared admission.Declared
}

type journalEntry struct {
	key desired.Key
	old claim
	was bool
}

func newBook() *book {
	return &book{
		claims: make(map[desired.Key]claim),
		left:   make(map[desired.Key]bool),
		status: make(map[desired.Key]*weftv1.FragmentStatus),
	}
}

func (b *book) claim(key desired.Key) (claim, bool) {
	c, ok := b.claims[key]
	return c, ok
}

// apply follows an update that the state has taken in.
func (b *book) apply(s *submission) {
	key := s.key()
	old, was := b.claims[key]
	s.durable = old.lifetime == weftv1.Lifetime_LIFETIME_DURABLE || s.update.Snapshot && s.lifetime == weftv1.Lifetime_LIFETIME_DURABLE
	if !s.update.Snapshot && s.after == nil {
		return
	}
	b.journal = append(b.journal, journalEntry{key, old, was})
	if !was || s.update.Snapshot && old.lifetime != s.lifetime {
		b.version++
	}
	if s.withdraws() {
		delete(b.claims, key)
		return
	}
	if s.update.Snapshot {
		b.claims[key] = claim{session: s.session, snapshot: s.serial, lifetime: s.lifetime, priority: s.update.Priority, declared: s.after}
		return
	}
	patched := old
	patched.declared = s.after
	b.claims[key] = patched
}

func (b *book) accept() {
	for _, j := range b.journal {
		c, ok := b.claims[j.key]
		if ok && j.was && c.lifetime != j.old.lifetime {
			// The record may have the old one: see records.
			b.version++
		}
		if !ok || c.session != nil || c.lifetime != weftv1.Lifetime_LIFETIME_SESSION {
			delete(b.left, j.key)
		}
	}
	b.journal = b.journal[:0]
}

func (b *book) rollback() {
	b.version++
	for _, j := range slices.Backward(b.journal) {
		if j.was {
			b.claims[j.key] = j.old
		} else {
			delete(b.claims, j.key)
		}
	}
	b.journal = b.journal[:0]
}

// leave ends a session's claim.
func (b *book) leave(key desired.Key) {
	c, ok := b.claims[key]
	if !ok {
		return
	}
	c.session = nil
	b.claims[key] = c
}

// of returns the fragments that belong to a session, ordered.
func (b *book) of(s *Session) []desired.Key {
	var keys []desired.Key
	for key, c := range b.claims {
		if c.session == s {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// orphan notes that a session fragment could not be withdrawn; false means that
// it is known.
func (b *book) orphan(key desired.Key) bool {
	if b.left[key] {
		return false
	}
	b.left[key] = true
	return true
}

// abandon makes orphans of the session fragments that were adopted and whose
// session has not come back; false means that there are none.
func (b *book) abandon() bool {
	for key, c := range b.claims {
		if c.adopted && c.lifetime == weftv1.Lifetime_LIFETIME_SESSION {
			b.left[key] = true
		}
	}
	return len(b.left) > 0
}

// orphans returns the session fragments that are to be withdrawn as soon as
// that is possible.
func (b *book) orphans() []desired.Key {
	if len(b.left) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(b.left), compareKeys)
}

func compareKeys(a, b desired.Key) int {
	return cmp.Or(cmp.Compare(a.Publisher, b.Publisher), cmp.Compare(a.Name, b.Name))
}

// returning reports whether an adopted fragment with watched flows has not come
// back yet, and whether any has not.
func (b *book) returning() (flows, some bool) {
	for _, c := range b.claims {
		flows = flows || c.adopted && c.conntrack
		some = some || c.adopted
	}
	return flows, some
}

// settle brings the status of updated fragments up to date. Changed means that
// there was a commit.
func (b *book) settle(accepted []*submission, state *desired.State, revision uint64, now time.Time, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revision = revision
	for _, s := range accepted {
		key := s.key()
		c, ok := b.claims[key]
		if !ok {
			delete(b.status, key)
			continue
		}
		st := &weftv1.FragmentStatus{
			Publisher: key.Publisher, Name: key.Name, Priority: c.priority, Lifetime: c.lifetime,
			State: weftv1.State_STATE_COMMITTED, Revision: revision, Changed: timestamppb.New(now),
		}
		if old := b.status[key]; old != nil && !changed {
			st.Revision, st.Changed = old.GetRevision(), old.GetChanged()
		}
		count(st, state)
		b.status[key] = st
	}
}

// rejected notes a rejection in the status of a fragment that exists.
func (b *book) rejected(r *RejectedError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.status[r.Fragment]
	if old == nil {
		return
	}
	b.status[r.Fragment] = withViolations(old, r.Violations)
}

// withViolations returns a copy of a status.
func withViolations(s *weftv1.FragmentStatus, v []*weftv1.Violation) *weftv1.FragmentStatus {
	return &weftv1.FragmentStatus{
		Publisher: s.GetPublisher(), Name: s.GetName(), Priority: s.GetPriority(), Lifetime: s.GetLifetime(),
		State: s.GetState(), Revision: s.GetRevision(), Changed: s.GetChanged(),
		Chains: s.GetChains(), Rules: s.GetRules(), Sets: s.GetSets(), Elements: s.GetElements(), Shadowed: s.GetShadowed(),
		Objects:    s.GetObjects(),
		Violations: v,
	}
}

// list returns the status of all fragments, ordered, and the last revision.
func (b *book) list() ([]*weftv1.FragmentStatus, uint64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	keys := slices.SortedFunc(maps.Keys(b.status), compareKeys)
	out := make([]*weftv1.FragmentStatus, 0, len(keys))
	for _, k := range keys {
		out = append(out, b.status[k])
	}
	return out, b.revision
}
