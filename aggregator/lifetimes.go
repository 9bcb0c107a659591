package aggregator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/views"
)

// lifetimes withdraws fragments at the end of their session, at their expiration, or if their publisher is
// not back after a restart.
type lifetimes struct {
	state *merge.State
	now   func() time.Time
	// sessions holds the open sessions that have sent updates.
	sessions map[uint64]*Session
	// abandoned holds fragments to withdraw. The value is true if no report is needed.
	abandoned map[desired.Key]bool
	// retry is true if the abandoned are to be retried without another update.
	retry bool
	expirations
}

func newLifetimes(state *merge.State, now func() time.Time) *lifetimes {
	return &lifetimes{state: state, now: now, sessions: make(map[uint64]*Session), abandoned: make(map[desired.Key]bool)}
}

func (l *lifetimes) withdrawals(keys []desired.Key, s *Session) []*submission {
	out := make([]*submission, 0, len(keys))
	for _, key := range keys {
		out = append(out, &submission{
			update: &desired.Update{Fragment: key, Snapshot: true}, session: s, leaving: true, result: make(chan Result, 1),
		})
	}
	return out
}

// end ends a session and returns the withdrawals of its fragments. Fragments with another lifetime stay.
func (l *lifetimes) end(s *Session) []*submission {
	s.ended = true
	delete(l.sessions, s.id)
	return l.withdrawals(views.SessionFragments(l.state, s.id), s)
}

func (l *lifetimes) isAbandoned(f desired.Status) bool {
	return l.expired(f) || f.Lifetime == desired.LifetimeSession && l.sessions[f.Session] == nil
}

// abandonAdopted ends the wait for the sessions from before the restart.
func (l *lifetimes) abandonAdopted() {
	for _, f := range views.Fragments(l.state) {
		if f.Adopted && f.Lifetime == desired.LifetimeSession {
			l.abandoned[f.Key] = true
		}
	}
	l.retry = len(l.abandoned) > 0
}

func (l *lifetimes) stillAbandoned() []desired.Key {
	if len(l.abandoned) == 0 {
		return nil
	}
	maps.DeleteFunc(l.abandoned, func(key desired.Key, _ bool) bool {
		f, ok := views.Fragment(l.state, key)
		return !ok || !l.isAbandoned(f)
	})
	return slices.SortedFunc(maps.Keys(l.abandoned), desired.Key.Compare)
}

type expirations struct {
	order []expiration
	timer *time.Timer
}

type expiration struct {
	at  time.Time
	key desired.Key
}

func (e expiration) compare(other expiration) int {
	return cmp.Or(e.at.Compare(other.at), e.key.Compare(other.key))
}

// set replaces the expiration time before by at. A zero time means never.
func (e *expirations) set(key desired.Key, before, at time.Time) {
	if i, ok := slices.BinarySearchFunc(e.order, expiration{before, key}, expiration.compare); ok {
		e.order = slices.Delete(e.order, i, i+1)
	}
	if !at.IsZero() {
		i, _ := slices.BinarySearchFunc(e.order, expiration{at, key}, expiration.compare)
		e.order = slices.Insert(e.order, i, expiration{at, key})
	}
}

// clockCheck bounds the time until a step of the clock is noticed.
const clockCheck = time.Minute

// due returns a channel that receives when the next fragment may have expired, or nil.
func (e *expirations) due(now time.Time) <-chan time.Time {
	if len(e.order) == 0 {
		return nil
	}
	wait := min(e.order[0].at.Sub(now), clockCheck)
	if e.timer == nil {
		e.timer = time.NewTimer(wait)
	} else {
		e.timer.Reset(wait)
	}
	return e.timer.C
}

func (l *lifetimes) expired(f desired.Status) bool {
	return !f.Expires.IsZero() && !f.Expires.After(l.now())
}

func (l *lifetimes) expire() {
	e, now := &l.expirations, l.now()
	for len(e.order) > 0 && !e.order[0].at.After(now) {
		key := e.order[0].key
		e.order = slices.Delete(e.order, 0, 1)
		if _, ok := l.abandoned[key]; !ok {
			l.abandoned[key] = false
		}
		l.retry = true
	}
}

// committed keeps the expiration time, and tells the earlier session about a withdrawal.
func (l *lifetimes) committed(s *submission) {
	if s.update.Snapshot {
		l.set(s.key(), s.before, s.update.Expires)
	}
	owner := l.sessions[s.owner]
	if owner == nil {
		return
	}
	if !s.expired.IsZero() {
		owner.expired[s.key().Name] = true
	}
	if s.withdraws() {
		owner.gone(s.key().Name, !s.expired.IsZero())
	}
}
