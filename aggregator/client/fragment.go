package client

import (
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

type mode int

const (
	// content of the last Put
	plain mode = iota
	// content returned by SessionConfig.Snapshot
	live
	// a Content with the committed state; each update is judged by itself
	patched
)

type fragment struct {
	name string
	// in the order of the first Put
	number uint64
	mode   mode
	// nil and 0 without a commit
	committed Content
	revision  uint64
	// source is the live content; wanted is the same from a Put until a Withdraw
	source, wanted Content
	// leaving is true after a rejected Withdraw of live content, stuck if the content cannot be
	// encoded
	leaving, stuck bool
	// the last Put or Withdraw while unanswered
	latest *update
	// unanswered counts updates, inflight messages; resyncing means that patches wait for a
	// snapshot in flight
	unanswered, inflight int
	resyncing            bool
	// the stream has acknowledged the committed content
	known bool
	// the stream needs a snapshot, at retry or later; delay is the last wait
	behind bool
	retry  time.Time
	delay  time.Duration
	// the aggregator may have an update that was answered otherwise, so it must get the committed
	// content, even nil
	unsure bool
	// error of the last resync
	refused error
	// live content has a rejected change: the next patch must be a snapshot
	dirty bool
	// while another stream of the publisher owns the fragment; only a Put takes it back
	lost *RejectedError
}

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

// next returns the content after all started updates, if they succeed.
func (f *fragment) next() Content {
	if f.latest != nil {
		return f.latest.content
	}
	return f.base()
}

func (f *fragment) patchable() bool { return f != nil && f.mode != plain && f.next() != nil }

// sendable reports whether the stream has the base of a patch.
func (f *fragment) sendable() bool {
	return !f.behind && !f.dirty && !f.resyncing && f.lost == nil && f.refused == nil
}

func (f *fragment) idle() bool {
	return f.unanswered+f.inflight == 0 && f.committed == nil && f.wanted == nil && f.lost == nil && !f.unsure
}

func (f *fragment) later(p pace) {
	f.delay = min(max(p.retry, 2*f.delay), p.maxRetry)
	f.retry = time.Now().Add(jitter(f.delay))
}
