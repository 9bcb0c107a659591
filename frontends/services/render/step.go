package render

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// Moves implements publish.Divisible: the listeners that only one of two forms of a Service has.
func (r *Renderer) Moves(old, now *model.Service) map[uint64]struct{} {
	out := make(map[uint64]struct{})
	for _, s := range []*model.Service{old, now} {
		b := builder{Renderer: r, service: cmp.Or(s, r.none.service), out: &rendered{}}
		r.each(b.service, b.port)
		for i := range b.out.listeners {
			move := maphash.Comparable(r.owners.seed, b.out.listeners[i].key)
			if _, both := out[move]; both {
				delete(out, move)
			} else {
				out[move] = struct{}{}
			}
		}
	}
	return out
}

// Step implements publish.Divisible: its first ports are those of now, and the others those of old.
// If the Service as a whole differs, the ports of old leave first.
func (r *Renderer) Step(old, now *model.Service, most int) *model.Service {
	was, is := cmp.Or(old, r.none.service), cmp.Or(now, r.none.service)
	size := r.Size(was) + r.Size(is)
	if size <= most || check(now) != nil {
		return now
	}
	out := *is
	if joint := alike(was, is); now == nil || !joint && r.Size(was) > most {
		out, is = *was, r.none.service
	} else if !joint {
		was = r.none.service
	}
	ports, n := max(len(was.Ports), len(is.Ports)), 0
	for n < min(len(was.Ports), len(is.Ports)) && was.Ports[n].Equal(&is.Ports[n]) {
		n++
	}
	// The ports of a Service are about as large as each other.
	if n += max(1, ports*most/size); n >= ports {
		return now
	}
	out.Ports = slices.Concat(is.Ports[:min(n, len(is.Ports))], was.Ports[min(n, len(was.Ports)):])
	all := r.Moves(old, now)
	for move := range r.Moves(old, &out) {
		if _, ok := all[move]; !ok {
			// A listener goes from port to port.
			return now
		}
	}
	return &out
}

// alike reports whether ports of both can be in one Service.
func alike(a, b *model.Service) bool {
	n := min(len(a.Ports), len(b.Ports))
	return a.InternalLocal == b.InternalLocal && a.ExternalLocal == b.ExternalLocal && a.Affinity == b.Affinity &&
		slices.EqualFunc(a.Ports[:n], b.Ports[:n], func(a, b model.Port) bool { return a.Name == b.Name && a.Protocol == b.Protocol })
}
