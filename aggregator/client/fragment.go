package client

import (
	"fmt"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

type fragment struct {
	name string
	// in the order of the first Put
	number uint64
	// the content is a *live
	live bool
	// base is the content after the last commit, or live content after a rejected Put; revision is
	// 0 without a commit
	base     Content
	revision uint64
	// the last Put or Withdraw while unanswered
	latest *update
	// unanswered counts updates, inflight messages; resyncing means that patches wait for a
	// snapshot in flight
	unanswered, inflight int
	resyncing            bool
	// the stream has acknowledged the base, and live content has no rejected change
	known bool
	// the stream needs a snapshot, at retry or later; delay is the last wait
	behind bool
	retry  time.Time
	delay  time.Duration
	// the aggregator may have committed an update with an unknown outcome, so it must get the
	// base, even nil
	unsure bool
	// error of the last resync
	refused error
	// why only a Put sends the fragment again: another stream of the publisher owns it, or it
	// cannot be encoded
	lost error
}

func (f *fragment) want(u *update) {
	f.unanswered++
	if u.patch != nil {
		return
	}
	f.latest, f.retry = u, time.Time{}
	if u.content != nil {
		_, f.live = u.content.(*live)
	}
}

// next returns the content after all started updates, if they succeed.
func (f *fragment) next() Content {
	if f.latest != nil {
		return f.latest.content
	}
	return f.base
}

func (f *fragment) patchable() bool {
	if f == nil || f.next() == nil {
		return false
	}
	_, whole := f.next().(fixed)
	return !whole
}

// sendable reports whether the stream has the base of a patch.
func (f *fragment) sendable() bool { return !f.behind && !f.resyncing && (f.known || !f.live) }

func (f *fragment) idle() bool {
	return f.unanswered+f.inflight == 0 && f.base == nil && f.lost == nil && !f.unsure
}

func (f *fragment) later(p pace) {
	f.delay = min(max(p.retry, 2*f.delay), p.maxRetry)
	f.retry = time.Now().Add(jitter(f.delay))
}

// unfit returns why an update can never be sent, or nil.
func (f *fragment) unfit(u *update) error {
	switch {
	case u.patch == nil || f.latest != nil || f.resyncing:
		return nil
	case f.lost != nil:
		// A snapshot would take the fragment back.
		return f.lost
	case f.refused != nil && !f.live:
		return fmt.Errorf("patch of %s: the fragment could not be sent again after a reconnect: send a snapshot: %w", u.name, f.refused)
	case f.base == nil && f.inflight == 0:
		return noSnapshot(u.name)
	default:
		return nil
	}
}

func noSnapshot(name string) error {
	return fmt.Errorf("patch of %s: %w: send a snapshot first", name, ErrNoSnapshot)
}

func (f *fragment) commit(m *message, revision uint64) {
	f.revision = revision
	if !m.whole() {
		if f.base != nil {
			f.base.Apply(m.patch)
		}
		return
	}
	f.base, f.known = m.content, m.content != nil
	if c, ok := m.content.(*live); ok {
		c.put = nil
	}
	f.behind, f.unsure, f.refused, f.lost, f.delay = false, false, nil, nil, 0
}

type update struct {
	number  uint64
	name    string
	content Content
	patch   *weftv1.Patch
	// a snapshot with this update and others was rejected
	alone   bool
	waiters []*Pending
}

func (u *update) answer(revision uint64, err error) {
	for _, w := range u.waiters {
		w.answer(revision, err)
	}
	u.waiters = nil
}

// shared reports whether one answer is enough for an update and the next one.
func (u *update) shared(next *update) bool {
	for _, c := range []Content{u.content, next.content} {
		switch c.(type) {
		case nil, fixed, *live:
		default:
			return false
		}
	}
	return true
}

// absorb adds the next update to an unsent one.
func (u *update) absorb(next *update) {
	u.waiters = append(u.waiters, next.waiters...)
	switch {
	case next.patch == nil:
		u.content, u.patch = next.content, nil
	case u.content != nil:
		u.content.Apply(next.patch)
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
