package render

import (
	"net/netip"
	"slices"

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
func assign(old []netip.AddrPort, active, draining []model.Endpoint) slots {
	n := len(active)
	out := slots{active: n, all: make([]netip.AddrPort, n+len(draining))}
	fill(out.all[:n], old[:min(n, len(old))], active)
	fill(out.all[n:], old[min(n, len(old)):], draining)
	return out
}

// fill places endpoints in to, which has room for exactly those; old is what
// the slots held.
func fill(to, old []netip.AddrPort, in []model.Endpoint) {
	if len(in) == 0 {
		return
	}
	if len(old) == 0 {
		for i := range in {
			to[i] = in[i].Addr
		}
		return
	}
	placed := make(map[netip.AddrPort]bool, len(in))
	for i := range in {
		placed[in[i].Addr] = false
	}
	for i := range min(len(old), len(to)) {
		if was, wanted := placed[old[i]]; wanted && !was {
			to[i], placed[old[i]] = old[i], true
		}
	}
	next := 0
	for i := range in {
		if placed[in[i].Addr] {
			continue
		}
		for to[next].IsValid() {
			next++
		}
		to[next] = in[i].Addr
	}
}

// same reports whether the slots already hold exactly these endpoints, so that
// nothing would move.
func (s *slots) same(active, draining []model.Endpoint) bool {
	if s.active != len(active) || len(s.all) != len(active)+len(draining) {
		return false
	}
	return holds(s.all[:s.active], active) && holds(s.all[s.active:], draining)
}

// holds reports whether slots and sorted endpoints are in the same order, which
// is the common case: no endpoint has come or gone since the start.
func holds(all []netip.AddrPort, in []model.Endpoint) bool {
	for i := range all {
		if all[i] != in[i].Addr {
			return false
		}
	}
	return true
}

// contains searches sorted endpoints.
func contains(in []model.Endpoint, e model.Endpoint) bool {
	_, ok := slices.BinarySearchFunc(in, e, compareEndpoints)
	return ok
}

func compareEndpoints(a, b model.Endpoint) int { return a.Addr.Compare(b.Addr) }
