package client

import (
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// mode says where the content of a fragment is.
type mode int

const (
	// plain is the content of the last Put: an update says all.
	plain mode = iota
	// live is the content that SessionConfig.Snapshot returns.
	live
	// patched is a Content, which has what was committed: each update is judged
	// by itself.
	patched
)

// fragment is what the session knows of one fragment.
type fragment struct {
	name string
	// number orders fragments as they were put first.
	number uint64
	mode   mode
	// committed is what was committed last and revision the commit; nil and 0 if
	// there is nothing.
	committed Content
	revision  uint64
	// source is the live content, wanted the same from a Put until a Withdraw.
	source, wanted Content
	// leaving is true after a Withdraw of live content was rejected, stuck if
	// the content cannot be encoded.
	leaving, stuck bool
	// latest is the last Put or Withdraw, as long as it has no answer.
	latest *update
	// unanswered counts updates, inflight messages, and resyncing is true while
	// one of these is a snapshot that patches must wait for.
	unanswered, inflight int
	resyncing            bool
	// known is true if the stream has acknowledged what is committed.
	known bool
	// behind is true if the stream needs a snapshot, in retry at the earliest;
	// delay is how long the last retry waited.
	behind bool
	retry  time.Time
	delay  time.Duration
	// unsure is true if the aggregator may have an update that was answered
	// otherwise: it must hear what was committed, also if that is nothing.
	unsure bool
	// refused is why the last resync failed.
	refused error
	// dirty is true if live content has a change that was rejected: the next
	// patch has to be a snapshot.
	dirty bool
	// lost is set while another stream of the publisher owns the fragment, to the
	// rejection that said so. Only a Put takes it back.
	lost *RejectedError
}

// want notes that an update was started.
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

// base returns what the aggregator should have, apart from updates on their way.
func (f *fragment) base() Content {
	if f.mode == live {
		return f.wanted
	}
	return f.committed
}

// next returns the content that the fragment has after all updates that were
// started, if they succeed.
func (f *fragment) next() Content {
	if f.latest != nil {
		return f.latest.content
	}
	return f.base()
}

// patchable reports whether there is content that a patch can change.
func (f *fragment) patchable() bool { return f != nil && f.mode != plain && f.next() != nil }

// sendable reports whether the stream has what a patch builds on.
func (f *fragment) sendable() bool {
	return !f.behind && !f.dirty && !f.resyncing && f.lost == nil && f.refused == nil
}

// idle reports whether there is nothing to remember.
func (f *fragment) idle() bool {
	return f.unanswered+f.inflight == 0 && f.committed == nil && f.wanted == nil && f.lost == nil && !f.unsure
}

// later has the resync tried again after a while.
func (f *fragment) later(p pace) {
	f.delay = min(max(p.retry, 2*f.delay), p.maxRetry)
	f.retry = time.Now().Add(jitter(f.delay))
}
