package client

import (
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// mode is the place of a fragment's content.
type mode int

const (
	// content of the last Put; an update is complete
	plain mode = iota
	// content returned by SessionConfig.Snapshot
	live
	// a Content with the committed state; each update is judged by itself
	patched
)

// fragment is the session's state of one fragment.
type fragment struct {
	name string
	// in the order of the first Put
	number uint64
	mode   mode
	// committed is the last committed content, revision its commit; nil and 0 without one.
	committed Content
	revision  uint64
	// source is the live content. wanted is the same from a Put until a Withdraw.
	source, wanted Content
	// leaving is true after a rejected Withdraw of live content, stuck if the content cannot be
	// encoded.
	leaving, stuck bool
	// the last Put or Withdraw while unanswered
	latest *update
	// unanswered counts updates, inflight messages. resyncing is true while a message in flight is
	// a snapshot that patches must wait for.
	unanswered, inflight int
	resyncing            bool
	// true if the stream has acknowledged the committed content
	known bool
	// behind is true if the stream needs a snapshot, at retry or later. delay is the length of the
	// last wait.
	behind bool
	retry  time.Time
	delay  time.Duration
	// true if the aggregator may have an update that was answered otherwise. It must get the
	// committed content, even if that is nil.
	unsure bool
	// error of the last resync
	refused error
	// true if live content has a rejected change: the next patch must be a snapshot
	dirty bool
	// the rejection while another stream of the publisher owns the fragment; only a Put takes it
	// back
	lost *RejectedError
}

// want records the start of an update.
func (f *fragment) want(u *update, snapshot func(string) *weftv1.Fragment) {
	f.unanswered++
	if u.patch != nil {
		return
	}
	f.latest, f.leaving, f.stuck, f.wanted, f.retry = u, false, false, nil, time.Time{}
	_, whole := u.content.(contentFunc)
	switch {
	case u.content == nil:
	case !whole:
		f.mode = patched
	case snapshot == nil:
		f.mode = plain
	default:
		f.mode, f.source = live, contentFunc(func() *weftv1.Fragment { return snapshot(f.name) })
		f.wanted = f.source
	}
}

// base returns the content that the aggregator should have, without updates in flight.
func (f *fragment) base() Content {
	if f.mode == live {
		return f.wanted
	}
	return f.committed
}

// next returns the fragment's content after all started updates, if they succeed.
func (f *fragment) next() Content {
	if f.latest != nil {
		return f.latest.content
	}
	return f.base()
}

// patchable reports whether a patch can change the content.
func (f *fragment) patchable() bool { return f != nil && f.mode != plain && f.next() != nil }

// sendable reports whether the stream has the base of a patch.
func (f *fragment) sendable() bool {
	return !f.behind && !f.dirty && !f.resyncing && f.lost == nil && f.refused == nil
}

// idle reports whether the fragment can be forgotten.
func (f *fragment) idle() bool {
	return f.unanswered+f.inflight == 0 && f.committed == nil && f.wanted == nil && f.lost == nil && !f.unsure
}

// later schedules a retry of the resync.
func (f *fragment) later(p pace) {
	f.delay = min(max(p.retry, 2*f.delay), p.maxRetry)
	f.retry = time.Now().Add(jitter(f.delay))
}
