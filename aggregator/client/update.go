package client

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

type update struct {
	number  uint64
	name    string
	content Content
	patch   *weftv1.Patch
	// an earlier stream had the update, which may have been committed
	seen    bool
	waiters []*Pending
}

func (u *update) answer(revision uint64, err error) {
	for _, w := range u.waiters {
		w.answer(revision, err)
	}
	u.waiters = nil
}

// absorb adds the next update to an unsent one. The live content already has the change of a patch.
func (u *update) absorb(next *update, live Content) {
	u.waiters = append(u.waiters, next.waiters...)
	switch {
	case next.patch == nil:
		u.content, u.patch = next.content, nil
	case u.patch == nil:
		u.content = live
	}
}

// message is an update, or a snapshot for any number of updates.
type message struct {
	id   uint64
	name string
	// in order
	updates []*update
	patch   *weftv1.Patch
	// content after the commit, unless patch is set; nil if the fragment is gone
	content Content
	// content before a Put, if the stream has it
	before Content
	// OnSync gets the outcome
	resync bool
}

func (m *message) whole() bool { return m.patch == nil || m.content != nil }

func (s *Session) register(f *fragment, m *message) *message {
	s.lastID++
	m.id, m.name = s.lastID, f.name
	s.inflight[m.id] = m
	f.inflight++
	f.resyncing = f.resyncing || m.whole() && (m.resync || f.mode == live)
	return m
}

func (s *Session) need(f *fragment) {
	f.known = false
	if !f.behind {
		f.behind = true
		s.behind = append(s.behind, f)
	}
	s.nudge()
}

func (s *Session) next(now time.Time) *message {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		s.behind = slices.DeleteFunc(s.behind, func(f *fragment) bool { return !f.behind })
	}()
	for _, f := range s.behind {
		if f.behind && f.inflight == 0 && !f.retry.After(now) {
			if m := s.resync(f); m != nil {
				return s.register(f, m)
			}
		}
	}
	// Updates of different fragments may need each other, so one that waits blocks the rest.
	for len(s.queue) > 0 {
		u := s.queue[0]
		f := s.fragments[u.name]
		if err := f.unfit(u); err != nil {
			s.take(u)
			s.resolve(u, 0, err)
			continue
		}
		if m := s.message(f, u); m != nil {
			return s.register(f, m)
		}
		break
	}
	return nil
}

// unfit returns why an update can never be sent, or nil.
func (f *fragment) unfit(u *update) error {
	switch {
	case u.patch == nil || u.seen || f.latest != nil || f.resyncing:
		return nil
	case f.lost != nil:
		// A snapshot would take the fragment back.
		return f.lost
	case f.mode == patched && f.refused != nil:
		return fmt.Errorf("patch of %s: the fragment could not be sent again after a reconnect: send a snapshot: %w", u.name, f.refused)
	case f.mode == patched && f.committed == nil && f.inflight == 0:
		return fmt.Errorf("patch of %s: %w: send a snapshot first", u.name, ErrNoSnapshot)
	default:
		return nil
	}
}

// message dequeues the first update of a fragment, or returns nil if it must wait.
func (s *Session) message(f *fragment, u *update) *message {
	switch {
	case f.resyncing:
		return nil
	case u.patch != nil && !f.behind && !f.dirty:
		s.take(u)
		return &message{updates: []*update{u}, patch: u.patch}
	case f.inflight > 0 || f.mode == patched && u.patch != nil:
		return nil
	case f.mode == live:
		m := s.joined(f)
		m.resync = f.dirty || m.updates[0].patch != nil
		return m
	}
	s.take(u)
	m := &message{updates: []*update{u}, content: u.content}
	if f.known {
		m.before = f.committed
	}
	return m
}

func (s *Session) resync(f *fragment) *message {
	f.behind, f.retry = false, time.Time{}
	m := &message{}
	if f.mode == patched {
		m.updates, m.content = s.seen(f)
	} else {
		m = s.joined(f)
	}
	m.resync = true
	if m.content == nil && len(m.updates) == 0 && !f.unsure {
		return nil
	}
	return m
}

// joined dequeues all updates of a fragment and returns one message for them.
func (s *Session) joined(f *fragment) *message {
	m := &message{updates: s.takeAll(func(u *update) bool { return u.name == f.name }), content: f.base()}
	for _, u := range m.updates {
		if m.content = u.content; u.patch != nil {
			m.content = f.wanted
		}
	}
	return m
}

// seen dequeues the updates of an earlier stream, and returns the content with them: without, the
// snapshot could briefly undo committed updates. It returns no updates if the last would hide the
// aggregator's answer to the others.
func (s *Session) seen(f *fragment) ([]*update, Content) {
	updates, content := s.takeAll(func(u *update) bool { return u.name == f.name && u.seen }), f.committed
	for i, u := range updates {
		if u.patch == nil && i > 0 {
			s.separate(updates)
			return nil, f.committed
		}
		if u.patch == nil {
			content = u.content
		}
	}
	if content == nil || len(updates) == 0 {
		return updates, content
	}
	content = content.Clone()
	for _, u := range updates {
		if u.patch != nil {
			content.Apply(u.patch)
		}
	}
	return updates, content
}

func (s *Session) separate(updates []*update) {
	for _, u := range updates {
		u.seen = false
	}
	s.requeue(updates)
}

func (s *Session) requeue(updates []*update) {
	s.queue = append(s.queue, updates...)
	slices.SortFunc(s.queue, func(a, b *update) int { return cmp.Compare(a.number, b.number) })
}

func (s *Session) take(u *update) { s.takeAll(func(v *update) bool { return u == v }) }

func (s *Session) takeAll(match func(*update) bool) []*update {
	var taken []*update
	s.queue = slices.DeleteFunc(s.queue, func(u *update) bool {
		if !match(u) {
			return false
		}
		taken = append(taken, u)
		return true
	})
	return taken
}

func (s *Session) recall() {
	for _, id := range slices.Sorted(maps.Keys(s.inflight)) {
		m := s.inflight[id]
		for _, u := range m.updates {
			u.seen = true
			s.fragments[u.name].unsure = s.fragments[u.name].mode != live
		}
		s.requeue(m.updates)
	}
	clear(s.inflight)
}

func (s *Session) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recall()
	for _, f := range slices.SortedFunc(maps.Values(s.fragments), func(a, b *fragment) int { return cmp.Compare(a.number, b.number) }) {
		f.inflight, f.resyncing, f.retry, f.known = 0, false, time.Time{}, false
		if f.lost == nil && !f.stuck && (f.base() != nil || f.unanswered > 0 || f.unsure) {
			s.need(f)
		}
	}
}

// fail answers all updates with an open outcome. They are still wanted, except for updates judged
// individually.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recall()
	for _, u := range slices.Clone(s.queue) {
		f, failure := s.fragments[u.name], fmt.Errorf("publish %s: %w", u.name, err)
		if u == f.latest && f.mode != patched {
			u.answer(0, failure)
			continue
		}
		s.take(u)
		s.resolve(u, 0, failure)
	}
}

func (s *Session) resolve(u *update, revision uint64, err error) {
	f := s.fragments[u.name]
	f.unanswered--
	if f.latest == u {
		f.latest = nil
	}
	u.answer(revision, err)
	s.forget(f)
}

func (s *Session) forget(f *fragment) {
	if f.idle() && s.fragments[f.name] == f {
		f.behind = false
		delete(s.fragments, f.name)
	}
}
