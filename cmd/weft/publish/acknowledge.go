package publish

import (
	"errors"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// take returns what was sent under a number, and forgets the number.
func (s *session) take(id uint64) any {
	what := s.wires[id]
	delete(s.wires, id)
	return what
}

// acknowledge takes one answer of the aggregator.
func (s *session) acknowledge(resp *weftv1.PublishResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := s.take(resp.GetId())
	if r := resp.GetRejected(); r != nil {
		s.refuse(what, &client.RejectedError{Violations: r.GetViolations()})
	} else {
		s.commit(what, resp.GetCommitted().GetRevision())
	}
	// A fragment may have waited for this.
	s.nudge()
}

// commit notes that an update or a resync is committed.
func (s *session) commit(what any, revision uint64) {
	switch w := what.(type) {
	case *update:
		f := s.fragment(w.fragment)
		f.apply(w.req)
		if w.req.GetPatch() == nil {
			f.lost, f.refused = false, nil
			delete(s.stale, w.fragment)
		}
		s.answer(w, revision, nil)
	case *resync:
		f := s.fragment(w.name)
		f.resync, f.refused, f.kept = nil, nil, w.after
		for _, u := range w.covers {
			s.answer(u, revision, nil)
		}
		s.forget(w.name)
	}
}

// refuse notes that an update or a resync is refused.
func (s *session) refuse(what any, err error) {
	switch w := what.(type) {
	case *update:
		s.refuseUpdate(w, err)
	case *resync:
		f := s.fragment(w.name)
		f.resync = nil
		rejected := named(err, w.name)
		switch {
		case len(w.covers) > 0:
			// What was acknowledged comes first, and then each by itself.
			uncover(w.covers)
			s.stale[w.name] = true
		case takenOver(err):
			f.lost = true
		default:
			s.stale[w.name] = true
			f.refused, f.retry = rejected, time.Now().Add(resyncWait)
			s.log.Error("fragment could not be brought back after a reconnect: trying again", "fragment", w.name, "error", rejected)
		}
	}
}

func (s *session) refuseUpdate(u *update, err error) {
	f := s.fragment(u.fragment)
	rejected := (*client.RejectedError)(nil)
	if errors.As(err, &rejected) && rejected.Has(weftv1.Reason_REASON_SNAPSHOT_NEEDED) && f.there() && f.err == nil && !f.lost {
		// The fragment is not what this patch was made for. It is sent again
		// after a snapshot.
		u.wire, u.sent = 0, false
		s.stale[u.fragment] = true
		return
	}
	if takenOver(err) {
		f.lost = true
	}
	s.answer(u, 0, named(err, u.fragment))
}

// takenOver says whether another stream has the fragment.
func takenOver(err error) bool {
	rejected := (*client.RejectedError)(nil)
	return errors.As(err, &rejected) && rejected.Has(weftv1.Reason_REASON_TAKEN_OVER)
}

// named adds the fragment's name to a rejection.
func named(err error, name string) error {
	if rejected := (*client.RejectedError)(nil); errors.As(err, &rejected) {
		rejected.Fragment = name
	}
	return err
}

// fragment returns a fragment, which it makes if need be.
func (s *session) fragment(name string) *fragment {
	f := s.fragments[name]
	if f == nil {
		f = &fragment{}
		s.fragments[name] = f
	}
	return f
}

// answer gives an update its outcome.
func (s *session) answer(u *update, revision uint64, err error) {
	u.revision, u.err = revision, err
	s.waiting = slices.DeleteFunc(s.waiting, func(o *update) bool { return o == u })
	close(u.done)
	s.forget(u.fragment)
}

// forget drops a fragment of which there is nothing.
func (s *session) forget(name string) {
	f := s.fragments[name]
	if f == nil || f.there() || f.resync != nil || f.lost || s.stale[name] {
		return
	}
	if !slices.ContainsFunc(s.waiting, func(u *update) bool { return u.fragment == name }) {
		delete(s.fragments, name)
	}
}
