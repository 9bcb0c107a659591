package client

import (
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// fragment is what the session knows of one of its fragments.
type fragment struct {
	name string
	// wish counts Puts and Withdraws: an update that carries an older number is
	// not what the publisher wants any more.
	wish uint64
	// kept is the last Put, and committed the last that was; only where there is
	// no SessionConfig.Snapshot.
	kept, committed *weftv1.Fragment
	// reverted is true when the last Put was refused: what is committed is what
	// is wanted.
	reverted bool
	// withdrawn is true once Withdraw was called, gone once it is committed.
	withdrawn, gone bool
	// leaving is true when a Withdraw was refused and nothing was put since.
	leaving bool
	// snapshot is the number of the last update that states the fragment as a
	// whole: the outcome of an earlier one does not matter any more.
	snapshot uint64
	// dirty is true when the aggregator may not have what patches build on.
	dirty bool
	// lost is set while another stream of the publisher owns the fragment, to
	// what said so; lostWish is the wish that it was said of.
	lost     *RejectedError
	lostWish uint64
	// stuck is true when the fragment can not be sent as it is.
	stuck bool
	// retry is when a refused resync is tried again, zero for never; delay is
	// how long it waited for that.
	retry time.Time
	delay time.Duration
}

// want notes a Put, or with nil a Withdraw.
func (f *fragment) want(put *weftv1.Fragment, keep bool) {
	f.wish++
	f.withdrawn, f.gone, f.leaving, f.reverted, f.stuck = put == nil, false, false, false, false
	f.retry = time.Time{}
	if keep {
		f.kept = put
	}
}

// void reports whether there is nothing that the session holds.
func (f *fragment) void() bool { return f.withdrawn && f.gone || f.reverted && f.kept == nil }

// idle reports whether there is nothing to bring the aggregator in step with.
func (f *fragment) idle() bool { return f.lost != nil || f.stuck || f.void() }

// accepted follows the commit of an update.
func (f *fragment) accepted(u *update) {
	if u.patch == nil {
		f.delay = 0
		f.committed = u.content
	}
	if f.reverted {
		f.kept = f.committed
	}
	if u.wish == f.wish && f.withdrawn {
		f.gone = true
	}
}

// refused follows the refusal of an update, which has not happened then. It
// returns true if the fragment, as it is wanted now, is to be sent once more.
func (f *fragment) refused(u *update, r *RejectedError, keep bool, p pace) (again bool) {
	if u.id < f.snapshot {
		return false
	}
	if r.Is(ErrTakenOver) {
		f.lost, f.lostWish = r, u.wish
		return false
	}
	f.dirty = true
	switch {
	case u.wish != f.wish || u.patch != nil:
		return false
	case f.withdrawn:
		f.withdrawn, f.leaving = false, true
		return keep && f.revert(u)
	case keep && u.content != f.committed:
		return f.revert(u)
	case u.resync && r.passing():
		f.later(p)
	}
	return false
}

// unsendable follows an update that can not be sent. It returns true if the
// fragment is to be sent once more, without it.
func (f *fragment) unsendable(u *update, keep bool) (again bool) {
	f.dirty = true
	switch {
	case u.wish != f.wish || u.patch != nil:
		return false
	case keep && u.content != f.committed:
		return f.revert(u)
	default:
		f.stuck = true
		return false
	}
}

// revert makes what was committed last the publisher's wish. It returns true if
// that is to be sent, as after a lost connection it may be gone.
func (f *fragment) revert(u *update) (again bool) {
	f.reverted, f.kept = true, f.committed
	return u.resync && f.kept != nil
}

// later has the fragment's resync tried again after a while.
func (f *fragment) later(p pace) {
	f.delay = min(max(p.retry, 2*f.delay), p.maxRetry)
	f.retry = time.Now().Add(jitter(f.delay))
}
