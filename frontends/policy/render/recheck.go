package render

import (
	"net/netip"
	"slices"
	"time"
)

// maxRechecked is how many addresses are rechecked one by one. If there are more, all
// connections are.
const maxRechecked = 16384

// recheck has the addresses whose established connections are judged again: for as long
// as a connection may be idle that was allowed before.
type recheck struct {
	// until has when each address is removed, queue the same in order of time. An address
	// that was added again has an outdated entry in the queue.
	until map[netip.Addr]time.Time
	queue []deadline
	// allUntil is until when all connections are judged again, zero if not.
	allUntil time.Time
	// changed are the addresses that differ from the kernel's, and inKernel is the set
	// there.
	changed  map[netip.Addr]struct{}
	inKernel map[netip.Addr]struct{}
}

type deadline struct {
	addr netip.Addr
	at   time.Time
}

func newRecheck() recheck {
	return recheck{until: make(map[netip.Addr]time.Time), changed: make(map[netip.Addr]struct{}), inKernel: make(map[netip.Addr]struct{})}
}

// everything reports whether all connections are judged again.
func (r *recheck) everything() bool { return !r.allUntil.IsZero() }

// empty reports whether no connection is.
func (r *recheck) empty() bool { return !r.everything() && len(r.until) == 0 }

// add adds an address.
func (r *recheck) add(a netip.Addr, until time.Time) {
	if r.everything() {
		r.allUntil = until
		return
	}
	r.until[a] = until
	r.queue = append(r.queue, deadline{a, until})
	r.changed[a] = struct{}{}
	if len(r.until) > maxRechecked {
		for a := range r.until {
			r.changed[a] = struct{}{}
		}
		clear(r.until)
		r.queue, r.allUntil = nil, until
	}
}

// expire removes the addresses whose time has passed.
func (r *recheck) expire(now time.Time) {
	if r.everything() && !now.Before(r.allUntil) {
		r.allUntil = time.Time{}
	}
	n := 0
	for ; n < len(r.queue) && !now.Before(r.queue[n].at); n++ {
		a := r.queue[n].addr
		if until, ok := r.until[a]; ok && !now.Before(until) {
			delete(r.until, a)
			r.changed[a] = struct{}{}
		}
	}
	if r.queue = r.queue[n:]; len(r.queue) == 0 {
		r.queue = nil
	}
}

// due returns when the next address expires, zero if none does.
func (r *recheck) due() time.Time {
	if r.everything() {
		return r.allUntil
	}
	if len(r.queue) == 0 {
		return time.Time{}
	}
	return r.queue[0].at
}

// flush returns what differs from the kernel.
func (r *recheck) flush() (add, remove []netip.Addr) {
	for a := range r.changed {
		_, wanted := r.until[a]
		switch _, has := r.inKernel[a]; {
		case wanted && !has:
			r.inKernel[a] = struct{}{}
			add = append(add, a)
		case has && !wanted:
			delete(r.inKernel, a)
			remove = append(remove, a)
		}
	}
	if len(r.changed) > 0 {
		r.changed = make(map[netip.Addr]struct{})
	}
	slices.SortFunc(add, netip.Addr.Compare)
	slices.SortFunc(remove, netip.Addr.Compare)
	return add, remove
}
