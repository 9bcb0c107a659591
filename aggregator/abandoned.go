package aggregator

import (
	"maps"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/views"
)

// withdrawals returns updates that withdraw the fragments of a session that has
// ended, or those that have expired.
func (w *writer) withdrawals(keys []desired.Key, s *Session) []*submission {
	out := make([]*submission, 0, len(keys))
	for _, key := range keys {
		out = append(out, &submission{
			update: &desired.Update{Fragment: key, Snapshot: true}, session: s, leaving: true, result: make(chan Result, 1),
		})
	}
	return out
}

// end records the end of a session and returns the withdrawals of its fragments.
// Fragments with another lifetime stay, and the withdrawals do nothing to them.
func (w *writer) end(s *Session) []*submission {
	s.ended = true
	delete(w.sessions, s.id)
	return w.withdrawals(views.SessionFragments(w.state, s.id), s)
}

// isAbandoned reports whether a fragment should go because its session has
// ended or its time has come.
func (w *writer) isAbandoned(f desired.Status) bool {
	return w.expired(f) || f.Lifetime == desired.LifetimeSession && w.sessions[f.Session] == nil
}

// abandonAdopted ends the wait for the sessions of before the restart.
func (w *writer) abandonAdopted() {
	for _, f := range views.Fragments(w.state) {
		if f.Adopted && f.Lifetime == desired.LifetimeSession {
			w.abandoned[f.Key] = true
		}
	}
	w.retryAbandoned = len(w.abandoned) > 0
}

// stillAbandoned returns the abandoned fragments, and forgets those that have
// been withdrawn or published again.
func (w *writer) stillAbandoned() []desired.Key {
	if len(w.abandoned) == 0 {
		return nil
	}
	maps.DeleteFunc(w.abandoned, func(key desired.Key, _ bool) bool {
		f, ok := views.Fragment(w.state, key)
		return !ok || !w.isAbandoned(f)
	})
	return slices.SortedFunc(maps.Keys(w.abandoned), desired.Key.Compare)
}
