package render

import (
	"net/netip"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// slots are where a front's endpoints sit: the first active get new flows, the
// rest drain.
type slots struct {
	active int
	all    []netip.AddrPort
}

// assign places endpoints, given in sorted order, with as few moves from old as
// possible: whatever can stay stays, the others fill the gaps in their order.
// The result depends on nothing but the arguments.
func assign(old []netip.AddrPort, active, draining model.Endpoints) slots {
	n := active.Len()
	out := slots{active: n, all: make([]netip.AddrPort, n+draining.Len())}
	fill(out.all[:n], old[:min(n, len(old))], active)
	fill(out.all[n:], old[min(n, len(old)):], draining)
	return out
}

// fill places endpoints in to, which has room for exactly those; old is what
// the slots held.
func fill(to, old []netip.AddrPort, in model.Endpoints) {
	if in.Len() == 0 {
		return
	}
	if len(old) == 0 {
		i := 0
		for e := range in.All() {
			to[i] = e.Addr
			i++
		}
		return
	}
	placed := make(map[netip.AddrPort]bool, in.Len())
	for e := range in.All() {
		placed[e.Addr] = false
	}
	for i := range min(len(old), len(to)) {
		if was, wanted := placed[old[i]]; wanted && !was {
			to[i], placed[old[i]] = old[i], true
		}
	}
	next := 0
	for e := range in.All() {
		if placed[e.Addr] {
			continue
		}
		for to[next].IsValid() {
			next++
		}
		to[next] = e.Addr
	}
}

// same reports whether the slots already hold exactly these endpoints, so that
// nothing would move.
func (s *slots) same(active, draining model.Endpoints) bool {
	if s.active != active.Len() || len(s.all) != active.Len()+draining.Len() {
		return false
	}
	return holds(s.all[:s.active], active) && holds(s.all[s.active:], draining)
}

// holds reports whether slots and sorted endpoints are in the same order, which
// is the common case: no endpoint has come or gone since the start.
func holds(all []netip.AddrPort, in model.Endpoints) bool {
	i := 0
	for e := range in.All() {
		if all[i] != e.Addr {
			return false
		}
		i++
	}
	return true
}
