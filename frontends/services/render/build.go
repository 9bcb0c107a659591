package render

import (
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// rendered has a Service's listeners and affinities.
type rendered struct {
	service   *model.Service
	listeners []listener
	// built on the first lookup among many
	at         map[listenerKey]int
	affinities []*affinity
}

// maximum for linear search
const manyListeners = 32

// index returns -1 if absent. It tries hint first.
func (r *rendered) index(k listenerKey, hint int) int {
	if hint < len(r.listeners) && r.listeners[hint].key == k {
		return hint
	}
	if len(r.listeners) <= manyListeners {
		return slices.IndexFunc(r.listeners, func(f listener) bool { return f.key == k })
	}
	if r.at == nil {
		r.at = make(map[listenerKey]int, len(r.listeners))
		for i := range slices.Backward(r.listeners) {
			r.at[r.listeners[i].key] = i
		}
	}
	if i, ok := r.at[k]; ok {
		return i
	}
	return -1
}

func (r *rendered) find(k listenerKey, hint int) *listener {
	if i := r.index(k, hint); i >= 0 {
		return &r.listeners[i]
	}
	return nil
}

// revisions are the changed slots of pools updated in place.
type revisions map[*pool][]int

type builder struct {
	*Renderer
	service *model.Service
	old     *rendered
	out     *rendered
	wants   []want
	revised revisions
}

// want selects a listener's lists: main, and Local too if local is true. inside is true for a ClusterIP.
type want struct {
	backends *model.Backends
	inside   bool
	main     list
	local    bool
}

func (w *want) uses(l list) bool { return w.main == l || w.local && l == byLocal }

// build updates pools of old in place if possible; then the listeners of old stay valid except for the
// endpoints in those pools. s may be nil.
func (r *Renderer) build(s *model.Service, old *rendered) (*rendered, revisions) {
	if s == nil {
		return r.none, nil
	}
	var wants [8]want
	b := builder{Renderer: r, service: s, old: old, out: &rendered{service: s}, wants: wants[:0], revised: make(revisions)}
	b.out.listeners = make([]listener, 0, r.cfg.listeners(s))
	r.cfg.each(s, b.port)
	b.pools()
	r.work += uint64(len(b.out.listeners))
	return b.out, b.revised
}

func (c *Config) each(s *model.Service, f func(*model.Port, model.Family)) {
	for i := range s.Ports {
		c.eachFamily(s, &s.Ports[i], f)
	}
}

func (c *Config) eachFamily(s *model.Service, p *model.Port, f func(*model.Port, model.Family)) {
	for fam := range model.NumFamilies {
		if p != nil && c.Families[fam] && s.ClusterIPs[fam].IsValid() {
			f(p, fam)
		}
	}
}

func (c *Config) listeners(s *model.Service) (n int) {
	c.each(s, func(p *model.Port, f model.Family) {
		listen(p, f, func(netip.Addr, uint16, *model.External) { n++ })
	})
	return n
}

// e is nil for the ClusterIP and the NodePort.
func listen(p *model.Port, fam model.Family, f func(addr netip.Addr, number uint16, e *model.External)) {
	if ip := p.ClusterIPs[fam]; ip.IsValid() {
		f(ip, p.Number, nil)
	}
	for i := range p.External[fam] {
		f(p.External[fam][i].Addr, p.Number, &p.External[fam][i])
	}
	if p.NodePort != 0 {
		f(netip.Addr{}, p.NodePort, nil)
	}
}

func (b *builder) port(p *model.Port, f model.Family) {
	s := b.service
	var a *affinity
	if s.Affinity > 0 {
		a = &affinity{family: f, protocol: p.Protocol, name: affinityName(s.Name, p), shape: shape{timeout: s.Affinity}}
	}
	from, ranges := len(b.out.listeners), sourcesOf(s.SourceRanges[f], f)
	listen(p, f, func(addr netip.Addr, number uint16, e *model.External) {
		inside := e == nil && addr.IsValid()
		w := want{backends: &p.Backends[f], inside: inside, local: !inside && s.ExternalLocal}
		if inside && s.InternalLocal {
			w.main = byLocal
		}
		var limits sources
		if e != nil && e.LoadBalancer {
			limits = ranges
		}
		b.wants = append(b.wants, w)
		b.out.listeners = append(b.out.listeners, listener{
			key:  listenerKey{addr: addr, port: number, protocol: p.Protocol, family: f},
			port: p.Name, list: w.main, sources: limits, sticky: a,
		})
	})
	if a != nil && len(b.out.listeners) > from {
		b.out.affinities = append(b.out.affinities, a)
	}
}

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
			if a := b.out.listeners[from].sticky; a != nil {
				a.endpoints[l] = l.of(b.wants[from].backends)
				a.shape.lists[l] = a.endpoints[l].Len() > 0
			}
		}
		for i := from; i < to; i++ {
			f, w := &b.out.listeners[i], &b.wants[i]
			f.main = pools[w.main]
			if w.local {
				f.local = pools[byLocal]
			}
			f.measure()
			f.decide(w.inside, w.local, w.backends.Cluster.Len() > 0)
			if b.cfg.Counters >= CountServices {
				f.verdicts[roleCounted] = verdict{to: present}
			}
		}
		from = to
	}
}

// pool is for the listeners [from, to); nil if they need no pool.
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
		k := b.out.listeners[i].key
		if was := b.old.find(k, i); was != nil {
			base = was.pool(l)
			if other == nil {
				other = was.main
			}
		} else if h := b.tables[k.family].previous[k]; h != nil && had == nil {
			had = h.slots
			if b.wants[i].main != l {
				had = h.local
			}
		}
	}
	if used < 0 {
		return nil
	}
	w, k := &b.wants[used], b.out.listeners[used].key
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
	b.work += uint64(len(b.old.listeners))
	if !b.stays(base, w.backends, l) {
		base = base.clone()
		b.work += uint64(base.slots.len())
	}
	changed, looked := base.revise(l, w.backends, candidates)
	b.work += uint64(looked)
	b.revised[base] = changed
	return base
}

// stays reports whether all remaining listeners of p want the same endpoints, so that p can change in place.
func (b *builder) stays(p *pool, backends *model.Backends, l list) bool {
	for i := range b.old.listeners {
		was := &b.old.listeners[i]
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
