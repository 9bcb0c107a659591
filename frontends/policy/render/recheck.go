package render

import (
	"net/netip"
	"slices"
	"time"
)

const (
	// Beyond maxRechecked addresses, all connections are rechecked.
	maxRechecked   = 16384
	expiryInterval = time.Minute
)

// See Renderer.EndRecheck.
type recheck struct {
	addresses map[netip.Addr]deadline
	all       *deadline    // not nil if all connections are judged again
	fresh     []netip.Addr // without a commit
	// limited means that addresses expire at their deadlines; next is the earliest expiry, zero
	// without addresses.
	limited  bool
	next     time.Time
	changed  map[netip.Addr]struct{} // from inKernel
	inKernel map[netip.Addr]struct{}
}

type deadline struct {
	until     time.Time
	committed time.Time // zero before the commit that narrowed the address
}

func newRecheck() recheck {
	return recheck{
		addresses: make(map[netip.Addr]deadline), limited: true,
		changed: make(map[netip.Addr]struct{}), inKernel: make(map[netip.Addr]struct{}),
	}
}

func (r *recheck) everything() bool { return r.all != nil }

func (r *recheck) empty() bool { return !r.everything() && len(r.addresses) == 0 }

func (r *recheck) add(a netip.Addr, until time.Time) {
	if r.next.IsZero() || until.Before(r.next) {
		r.next = until
	}
	_, had := r.addresses[a]
	if r.everything() {
		r.all = &deadline{until: until}
		if !had {
			return
		}
	}
	r.put(a, until)
	if len(r.addresses) > maxRechecked {
		for a := range r.addresses {
			r.changed[a] = struct{}{}
		}
		clear(r.addresses)
		r.fresh, r.all = nil, &deadline{until: until}
	}
}

func (r *recheck) put(a netip.Addr, until time.Time) {
	if d, ok := r.addresses[a]; !ok || !d.committed.IsZero() {
		r.fresh = append(r.fresh, a)
	}
	r.addresses[a] = deadline{until: until}
	r.changed[a] = struct{}{}
}

func (r *recheck) commit(now time.Time) {
	for _, a := range r.fresh {
		if d, ok := r.addresses[a]; ok {
			d.committed = now
			r.addresses[a] = d
		}
	}
	r.fresh = nil
	if r.all != nil && r.all.committed.IsZero() {
		r.all.committed = now
	}
}

func (r *recheck) remove(a netip.Addr) {
	delete(r.addresses, a)
	r.changed[a] = struct{}{}
}

func (r *recheck) expire(now time.Time) {
	due := r.due()
	if due.IsZero() || now.Before(due) {
		return
	}
	if r.everything() && !now.Before(r.all.until) {
		r.all = nil
	}
	earliest := time.Time{}
	if r.all != nil {
		earliest = r.all.until
	}
	for a, d := range r.addresses {
		switch {
		case !now.Before(d.until):
			r.remove(a)
		case earliest.IsZero() || d.until.Before(earliest):
			earliest = d.until
		}
	}
	if !earliest.IsZero() && earliest.Before(now.Add(expiryInterval)) {
		earliest = now.Add(expiryInterval)
	}
	r.next = earliest
}

// due returns zero if no address may expire.
func (r *recheck) due() time.Time {
	if !r.limited || r.empty() {
		return time.Time{}
	}
	return r.next
}

func (r *recheck) flush() (add, remove []netip.Addr) {
	for a := range r.changed {
		_, wanted := r.addresses[a]
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
