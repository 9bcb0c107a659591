package client

import (
	"errors"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func (s *Session) outcome(id, revision uint64, err error) {
	s.mu.Lock()
	m := s.inflight[id]
	if m == nil {
		s.mu.Unlock()
		return
	}
	delete(s.inflight, id)
	f := s.fragments[m.name]
	f.inflight--
	if m.whole() {
		f.resyncing = false
	}
	if rejected := (*RejectedError)(nil); errors.As(err, &rejected) {
		rejected.Fragment = m.name
	}
	again := false
	if err == nil {
		f.commit(m, revision)
	} else {
		err, again = s.refuse(f, m, err)
	}
	waiting := len(s.queue) > 0 || len(s.behind) > 0
	s.mu.Unlock()
	if waiting {
		s.nudge()
	}
	if again {
		return
	}
	if m.resync && s.cfg.OnSync != nil {
		s.cfg.OnSync(m.name, revision, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range m.updates {
		s.resolve(u, revision, err)
	}
	s.forget(f)
}

func (f *fragment) commit(m *message, revision uint64) {
	f.revision = revision
	if !m.whole() {
		if f.committed != nil {
			f.committed.Apply(m.patch)
		}
		return
	}
	f.committed, f.known = m.content, m.content != nil
	if f.mode == live && f.committed != nil {
		f.committed = f.source
	}
	f.behind, f.dirty, f.leaving, f.unsure = false, false, false, false
	f.refused, f.lost, f.delay = nil, nil, 0
}

// refuse records the failure of a message. It returns the error for waiting callers, or reports
// that the updates will be sent again.
func (s *Session) refuse(f *fragment, m *message, err error) (_ error, again bool) {
	rejected := (*RejectedError)(nil)
	if errors.As(err, &rejected) && rejected.Has(weftv1.Violation_REASON_EXPIRED) {
		f.committed, f.wanted, f.known, f.unsure, f.dirty = nil, nil, false, false, f.mode == live
		return err, false
	}
	if isRejected := errors.As(err, &rejected); m.patch != nil {
		switch {
		case !isRejected && f.mode == live && errors.Is(err, ErrTooLarge):
			// A snapshot can have several messages.
			f.dirty = true
			s.requeue(m.updates)
			return nil, true
		case !isRejected:
		case rejected.Is(ErrTakenOver):
			f.lost, f.behind, f.known = rejected, false, false
			return rejected, false
		case !rejected.Has(weftv1.Violation_REASON_SNAPSHOT_NEEDED):
		case f.lost != nil:
			return f.lost, false
		case f.next() != nil:
			s.requeue(m.updates)
			s.need(f)
			return nil, true
		}
	}
	passing := rejected != nil && rejected.passing()
	switch {
	case f.mode == live:
		s.refuseLive(f, m, err, passing)
	case m.resync && len(m.updates) == 0:
		if f.refused = err; passing {
			f.later(s.client.cfg.pace)
			s.need(f)
		}
	case m.resync && f.mode == patched && (len(m.updates) > 1 || m.updates[0].patch != nil):
		// First the committed content, and then each update by itself.
		s.separate(m.updates)
		s.need(f)
		return nil, true
	case m.whole() && !f.known && (f.committed != nil || f.unsure):
		s.need(f)
	}
	return err, false
}

func (s *Session) refuseLive(f *fragment, m *message, err error, passing bool) {
	if n := len(m.updates); f.latest != nil && (n == 0 || f.latest.number > m.updates[n-1].number) {
		// The publisher does not want it any more.
		f.dirty = true
		return
	}
	if m.content == nil && m.patch == nil {
		f.wanted, f.leaving = f.committed, true
		return
	}
	f.dirty = true
	if m.resync && m.patch == nil && passing {
		f.later(s.client.cfg.pace)
		s.need(f)
	}
	f.stuck = m.patch == nil && isUnsendable(err)
}
