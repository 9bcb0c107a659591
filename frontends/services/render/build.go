package render

import (
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// rendered is a Service together with its fronts.
type rendered struct {
	service *model.Service
	fronts  []front
	// affinities are those of its ports.
	affinities []*affinity
}

// index returns the place of the front of a key, -1 if there is none. It is most
// likely at the place hint.
func (r *rendered) index(k frontKey, hint int) int {
	if r == nil {
		return -1
	}
	if hint < len(r.fronts) && r.fronts[hint].key == k {
		return hint
	}
	return slices.IndexFunc(r.fronts, func(f front) bool { return f.key == k })
}

// find returns the front of a key, nil if there is none.
func (r *rendered) find(k frontKey, hint int) *front {
	if i := r.index(k, hint); i >= 0 {
		return &r.fronts[i]
	}
	return nil
}

// revision is a pool that stays, and its slots that have another endpoint.
type revision struct {
	pool    *pool
	changed []int
}

// builder builds the fronts of a Service.
type builder struct {
	*Renderer
	service *model.Service
	old     *rendered
	out     *rendered
	// wants are what the fronts in out need.
	wants []want
	// revised are the pools of old that stay with other endpoints.
	revised []revision
}

// want is which endpoints of which port a front is for.
type want struct {
	backends *model.Backends
	// inside is true for traffic from inside of the cluster.
	inside bool
	main   list
	// local is true if the front has both lists.
	local bool
}

// uses reports whether the list is one of those wanted.
func (w *want) uses(l list) bool { return w.main == l || w.local && l == byLocal }

// build renders a Service, nil for none, starting from the pools that its fronts
// had. Pools stay where they can, and are revised: the fronts of old then are good
// for all but the endpoints in those.
func (r *Renderer) build(s *model.Service, old *rendered) (*rendered, []revision) {
	if s == nil {
		return nil, nil
	}
	var wants [8]want
	b := builder{Renderer: r, service: s, old: old, out: &rendered{service: s}, wants: wants[:0]}
	b.out.fronts = make([]front, 0, r.size(s))
	r.each(s, b.port)
	b.pools()
	r.work += uint64(len(b.out.fronts))
	return b.out, b.revised
}

// each calls f for the ports of a Service in the families that it has.
func (r *Renderer) each(s *model.Service, f func(*model.Port, model.Family)) {
	for i := range s.Ports {
		for fam := range model.Families {
			if r.cfg.Families[fam] && s.ClusterIPs[fam].IsValid() {
				f(&s.Ports[i], fam)
			}
		}
	}
}

// size returns how many fronts a Service has.
func (r *Renderer) size(s *model.Service) (n int) {
	r.each(s, func(p *model.Port, f model.Family) {
		n += index(p.ClusterIPs[f].IsValid()) + len(p.External[f]) + index(p.NodePort != 0)
	})
	return n
}

// port builds the fronts of a port in one family.
func (b *builder) port(p *model.Port, f model.Family) {
	s := b.service
	var a *affinity
	if s.Affinity > 0 {
		a = &affinity{family: f, protocol: p.Protocol, timeout: s.Affinity, name: affinityName(s.Name, p)}
	}
	from := len(b.out.fronts)
	add := func(addr netip.Addr, number uint16, inside bool, sources []netip.Prefix) {
		w := want{backends: &p.Backends[f], inside: inside, local: !inside && s.ExternalLocal}
		if inside && s.InternalLocal {
			w.main = byLocal
		}
		b.wants = append(b.wants, w)
		b.out.fronts = append(b.out.fronts, front{
			key:  frontKey{addr: addr, port: number, protocol: p.Protocol, family: f},
			port: p.Name, list: w.main, sources: sources, sticky: a,
		})
	}
	if ip := p.ClusterIPs[f]; ip.IsValid() {
		add(ip, p.Number, true, nil)
	}
	for _, e := range p.External[f] {
		var sources []netip.Prefix
		if ranges := s.SourceRanges[f]; e.LoadBalancer && ranges != nil {
			// An empty list lets nobody through, no list everybody.
			sources = append([]netip.Prefix{}, prefixes(ranges, f)...)
		}
		add(e.Addr, p.Number, false, sources)
	}
	if p.NodePort != 0 {
		add(netip.Addr{}, p.NodePort, false, nil)
	}
	if a != nil && len(b.out.fronts) > from {
		b.out.affinities = append(b.out.affinities, a)
	}
}

// pools gives the fronts their pools, and decides what becomes of flows to them.
func (b *builder) pools() {
	for from := 0; from < len(b.wants); {
		to := from + 1
		for to < len(b.wants) && b.wants[to].backends == b.wants[from].backends {
			to++
		}
		var pools [numLists]*pool
		for l := range numLists {
			if pools[l] = b.pool(from, to, l); pools[l] == nil {
				continue
			}
			if a := b.out.fronts[from].sticky; a != nil {
				a.lists[l] = affinityList{true, l.of(b.wants[from].backends)}
			}
		}
		for i := from; i < to; i++ {
			f, w := &b.out.fronts[i], &b.wants[i]
			f.main = pools[w.main]
			if w.local {
				f.local = pools[byLocal]
			}
			f.measure()
			f.decide(w.inside, w.local, w.backends.Cluster.Len() > 0)
		}
		from = to
	}
}

// pool returns the pool that the fronts from from to to, which are those of a port,
// have for a list; nil if they need none.
func (b *builder) pool(from, to int, l list) *pool {
	var base, other *pool
	var had []byte
	used := -1
	for i := from; i < to && base == nil; i++ {
		if !b.wants[i].uses(l) {
			continue
		}
		if used < 0 {
			used = i
		}
		k := b.out.fronts[i].key
		if was := b.old.find(k, i); was != nil {
			base = was.pool(l)
			if other == nil {
				other = was.main
			}
		} else if h := b.tables[k.family].hints[k]; h != nil && had == nil {
			had = h.slots
			if b.wants[i].main != l {
				had = h.local
			}
		}
	}
	if used < 0 {
		return nil
	}
	w, k := &b.wants[used], b.out.fronts[used].key
	if base == nil {
		base = other
	}
	if base == nil {
		out := newPool(k.family, k.protocol, l, w.backends, had)
		b.work += uint64(out.slots.len())
		return out
	}
	candidates := base.differing(l, w.backends)
	if len(candidates) == 0 && base.list == l {
		base.of = w.backends
		return base
	}
	b.work += uint64(len(b.old.fronts))
	if !b.stays(base, w.backends, l) {
		base = base.clone()
		b.work += uint64(base.slots.len())
	}
	changed, looked := base.revise(l, w.backends, candidates)
	b.work += uint64(looked)
	b.revised = append(b.revised, revision{base, changed})
	return base
}

// stays reports whether a pool can become the one of a port for a list in place: no
// front that had it goes on with another one.
func (b *builder) stays(p *pool, backends *model.Backends, l list) bool {
	for i := range b.old.fronts {
		was := &b.old.fronts[i]
		if was.main != p && was.local != p {
			continue
		}
		at := b.out.index(was.key, i)
		if at < 0 {
			continue
		}
		w := &b.wants[at]
		if w.backends != backends || was.main == p && w.main != l || was.local == p && w.local && l != byLocal {
			return false
		}
	}
	return true
}
