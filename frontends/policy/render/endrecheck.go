package render

import (
	"net/netip"
	"slices"
	"time"
)

// Rechecked is an address with established connections that are judged again.
type Rechecked struct {
	// Addr is unspecified for all addresses of the family.
	Addr netip.Addr
	// Committed is the time of the last commit that narrowed the address; zero before.
	Committed time.Time
}

// Rechecked returns the addresses under recheck, sorted.
func (r *Renderer) Rechecked() (out []Rechecked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if all := t.recheck.all; all != nil {
			out = append(out, Rechecked{Addr: t.family.all, Committed: all.committed})
		}
		for a, d := range t.recheck.addresses {
			out = append(out, Rechecked{Addr: a, Committed: d.committed})
		}
	}
	slices.SortFunc(out, func(a, b Rechecked) int { return a.Addr.Compare(b.Addr) })
	return out
}

// Committed notes that all updates are in force.
func (r *Renderer) Committed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.committed()
}

// Rejected notes that the last update was rejected. Objects declared since the last commit leave
// the snapshot once unused.
func (r *Renderer) Rejected() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		t.answered(true)
	}
}

func (r *Renderer) committed() {
	now := r.cfg.Now()
	for _, t := range r.tables {
		t.answered(false)
		// While a large set is filled, pods may still have the old chains.
		if len(t.unsent)+len(t.unsentPods) == 0 {
			t.recheck.commit(now)
		}
	}
}

// EndRecheck ends the recheck of addresses from Rechecked, except for denied ones and addresses
// narrowed again. denied has the addresses of all remaining denied connections. If all connections
// of a family are rechecked, these addresses are added first, and are alone after the next call.
//
// changed means that the next Update has something to send.
func (r *Renderer) EndRecheck(looked []Rechecked, denied map[netip.Addr]struct{}) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		for _, l := range looked {
			if t.has(l.Addr) && t.recheck.end(l, denied, t.family) {
				changed = true
			}
		}
	}
	return changed
}

func (r *recheck) end(l Rechecked, denied map[netip.Addr]struct{}, f *family) (changed bool) {
	if l.Addr == f.all {
		return !l.Committed.IsZero() && r.all != nil && r.all.committed.Equal(l.Committed) && r.endAll(denied, f)
	}
	d, ok := r.addresses[l.Addr]
	_, keep := denied[l.Addr]
	if !ok || keep || l.Committed.IsZero() || !d.committed.Equal(l.Committed) {
		return false
	}
	r.remove(l.Addr)
	return true
}

// The kernel switches to the rules before their set has its elements.
func (r *recheck) endAll(denied map[netip.Addr]struct{}, f *family) (changed bool) {
	complete := true
	var missing []netip.Addr
	for a := range denied {
		if a.BitLen() != f.bits {
			continue
		}
		d, ok := r.addresses[a]
		complete = complete && ok && !d.committed.IsZero()
		if !ok {
			missing = append(missing, a)
		}
	}
	switch {
	case complete:
		r.all = nil
		return true
	case len(r.addresses)+len(missing) > maxRechecked:
		return false
	}
	for _, a := range missing {
		r.put(a, r.all.until)
	}
	return len(missing) > 0
}

// LimitRecheck sets whether a recheck ends after Config.RecheckFor, as initially.
func (r *Renderer) LimitRecheck(limited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		t.recheck.limited = limited
	}
}
