package client

import (
	"errors"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// outcome ends a message. It calls OnSync before the callers waiting for the same outcome continue.
func (s *Session) outcome(id, revision uint64, err error) {
	m, err := s.outbox.judge(id, revision, err)
	if m == nil {
		return
	}
	if m.resync && s.cfg.OnSync != nil {
		s.cfg.OnSync(m.name, revision, err)
	}
	s.outbox.answer(m, revision, err)
}

// judge records the outcome of a message. It returns the message and the error for waiting callers,
// or nil if the updates will be sent again.
func (o *outbox) judge(id, revision uint64, err error) (*message, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.inflight[id]
	if m == nil {
		return nil, nil
	}
	delete(o.inflight, id)
	f := o.fragments[m.name]
	f.inflight--
	if m.whole() {
		f.resyncing = false
	}
	again := false
	if err == nil {
		f.commit(m, revision)
	} else {
		err, again = o.refuse(f, m, err)
	}
	if len(o.queue)+len(o.behind) > 0 {
		o.nudge()
	}
	if again {
		return nil, nil
	}
	return m, err
}

func (o *outbox) answer(m *message, revision uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.fragments[m.name]
	for _, u := range m.updates {
		o.resolve(u, revision, err)
	}
	if f != nil {
		o.forget(f)
	}
}

// refuse records the failure of a message. It returns the error for waiting callers, or reports
// that the updates will be sent again.
func (o *outbox) refuse(f *fragment, m *message, err error) (_ error, again bool) {
	rejected, isRejected := errors.AsType[*RejectedError](err)
	if isRejected {
		rejected.Fragment = m.name
	}
	needed := isRejected && m.patch != nil && rejected.Has(weftv1.Violation_REASON_SNAPSHOT_NEEDED)
	switch {
	case isRejected && rejected.Has(weftv1.Violation_REASON_EXPIRED):
		f.base, f.known, f.unsure = nil, false, false
		return err, false
	case m.patch != nil && isRejected && rejected.Is(ErrTakenOver):
		f.lost, f.behind, f.known = err, false, false
		return err, false
	case needed && f.lost != nil:
		return f.lost, false
	case needed && f.next() != nil, m.patch != nil && f.live && errors.Is(err, ErrTooLarge):
		// A snapshot is sent in parts, a patch is not.
		o.requeue(m.updates...)
		o.need(f)
		return nil, true
	}
	if c, ok := m.content.(*live); ok {
		c.put = nil
		f.base = c
	}
	f.known = f.known && !f.live
	switch {
	case f.live && m.whole() && isUnsendable(err):
		f.lost = err
	case m.resync && (f.live || len(m.updates) == 0):
		if f.refused = err; isRejected && rejected.passing() {
			f.later(o.pace)
			o.need(f)
		}
	case m.resync && (len(m.updates) > 1 || m.updates[0].patch != nil):
		// First the committed content, and then each update by itself.
		for _, u := range m.updates {
			u.alone = true
		}
		o.requeue(m.updates...)
		o.need(f)
		return nil, true
	case m.whole() && !f.live && !f.known && (f.base != nil || f.unsure):
		o.need(f)
	}
	return err, false
}
