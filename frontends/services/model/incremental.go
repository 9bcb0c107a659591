package model

import (
	"cmp"
	"slices"
)

// A Service with at least largeSize slices and endpoints is computed incrementally, until it shrinks to
// half. Smaller Services are recomputed without extra state.
const largeSize = 512

// incremental is the state that makes changes of a large Service cheap.
type incremental struct {
	// slices and endpoints
	size   int
	pools  map[source]*pool
	before map[source]*pool
}

type pool struct {
	width int
	// endpoints of all slices, with duplicates
	all *packedList
	// seen is the version of all for the fields below.
	seen        *packedList
	readyCounts readyCounts
	// backends can be updated in place
	chosen   bool
	choice   choice
	backends Backends
}

// endpointChange is a change at an address; "" means no endpoint.
type endpointChange struct {
	was, now string
}

func (m *Model) updateIncremental(r *record) {
	l := r.incremental
	if l != nil && l.size >= m.largeSize/2 {
		l.before, l.pools = l.pools, make(map[source]*pool)
		return
	}
	size := 0
	for s := r.slices; s != nil; s = s.next {
		size += s.size()
		m.stats.Work++
	}
	r.incremental = nil
	if size >= m.largeSize {
		r.incremental = &incremental{size: size, pools: make(map[source]*pool)}
	}
}

func (m *Model) pool(r *record, of source) *pool {
	p := r.incremental.before[of]
	if p == nil {
		all, width := m.merged(r, of), widths[of.family]
		p = &pool{width: width, all: newList(all, width)}
		p.seen, p.readyCounts = p.all, count(withoutRepeats(all, width), width)
	}
	r.incremental.pools[of] = p
	return p
}

// updatePools applies a slice's change to its Service's pools. was or now may be nil.
func (m *Model) updatePools(was, now *slice) {
	l := cmp.Or(now, was).of.incremental
	if l == nil {
		return
	}
	for of, p := range l.pools {
		edits := editsBetween(m.gather(nil, was, of), m.gather(nil, now, of))
		p.all = p.all.apply(edits, p.width, &m.stats.Work)
	}
	l.size += now.size() - was.size()
}

// size counts a slice, which may be nil, and its endpoints.
func (s *slice) size() int {
	if s == nil {
		return 0
	}
	return 1 + s.len()
}

// editsBetween returns the edits from was to now. It sorts both.
func editsBetween(was, now []packedEndpoint) (out []edit) {
	slices.SortFunc(was, comparePacked)
	slices.SortFunc(now, comparePacked)
	for len(was) > 0 && len(now) > 0 {
		switch order := was[0].compare(&now[0]); {
		case order < 0:
			out = append(out, edit{packedEndpoint: was[0]})
			was = was[1:]
		case order > 0:
			out = append(out, edit{packedEndpoint: now[0], add: true})
			now = now[1:]
		default:
			was, now = was[1:], now[1:]
		}
	}
	for _, e := range was {
		out = append(out, edit{packedEndpoint: e})
	}
	for _, e := range now {
		out = append(out, edit{packedEndpoint: e, add: true})
	}
	return out
}

// countChanged updates the pool's counts and returns the changed endpoints.
func (p *pool) countChanged(work *uint64) (changed []endpointChange) {
	key := p.width - 1
	last := ""
	p.all.diff(p.seen, func(s string, _ bool) bool {
		if s[:key] == last {
			return true
		}
		last = s[:key]
		t := endpointChange{p.seen.first(last, work), p.all.first(last, work)}
		if t.was == t.now {
			return true
		}
		if t.was != "" {
			p.readyCounts.add(flags(t.was[key]), -1)
		}
		if t.now != "" {
			p.readyCounts.add(flags(t.now[key]), 1)
		}
		changed = append(changed, t)
		return true
	}, work)
	*work += uint64(len(changed))
	p.seen = p.all
	return changed
}

// incrementalBackends updates a port's lists, or rebuilds them if the choice changed.
func (m *Model) incrementalBackends(s *service, port *servicePort, p *pool) Backends {
	changed := p.countChanged(&m.stats.Work)
	c := p.readyCounts.choose(s, port)
	if !p.chosen || c != p.choice || p.all.len() > MaxEndpoints {
		all := m.merger.start()
		p.all.each(func(s string) bool {
			var e packedEndpoint
			copy(e[:], s)
			all = append(all, e)
			return true
		})
		m.stats.Work += uint64(len(all))
		p.backends = m.partition(s, port, withoutRepeats(m.merger.finish(all), p.width), c, p.width)
		// A truncated list cannot be updated.
		p.chosen, p.choice = p.all.len() <= MaxEndpoints, c
		return p.backends
	}
	for _, l := range c.lists(&p.backends) {
		l.all = l.all.apply(editsIn(changed, l.has, p.width), p.width, &m.stats.Work)
	}
	return p.backends
}

func editsIn(changed []endpointChange, has func(flags) bool, width int) (out []edit) {
	in := func(s string) (e packedEndpoint, ok bool) {
		if s == "" || !has(flags(s[width-1])) {
			return e, false
		}
		copy(e[:], s)
		e[width-1] = localFlag(flags(s[width-1]))
		return e, true
	}
	for _, t := range changed {
		was, left := in(t.was)
		now, came := in(t.now)
		switch {
		case left && came && was == now:
		case left && came && was.compare(&now) > 0:
			out = append(out, edit{packedEndpoint: now, add: true}, edit{packedEndpoint: was})
		case left && came:
			out = append(out, edit{packedEndpoint: was}, edit{packedEndpoint: now, add: true})
		case left:
			out = append(out, edit{packedEndpoint: was})
		case came:
			out = append(out, edit{packedEndpoint: now, add: true})
		}
	}
	return out
}
