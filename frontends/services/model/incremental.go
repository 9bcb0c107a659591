package model

import (
	"cmp"
	"slices"
)

// largeSize is the number of slices and endpoints from which a Service is computed
// incrementally, until it has less than half of that. A smaller Service is computed as a
// whole, and nothing is kept for it.
const largeSize = 512

// incremental is the state of a Service with many endpoints, by which a change costs only
// what changes.
type incremental struct {
	// size is the number of slices and endpoints.
	size  int
	pools map[source]*pool
	// before are the pools of the previous computation.
	before map[source]*pool
}

// pool has the endpoints that one source selects.
type pool struct {
	width int
	// all has the endpoints of all slices, with duplicates.
	all *packedList
	// seen is the value of all from which the fields below were computed.
	seen        *packedList
	readyCounts readyCounts
	// chosen is true if changes can be applied to backends.
	chosen   bool
	choice   choice
	backends Backends
}

// endpointChange is the change of the endpoint at an address; an empty string means none.
type endpointChange struct {
	was, now string
}

// updateIncremental decides whether a Service is computed incrementally.
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

// pool returns the pool of a source, and makes one if there is none.
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

// updatePools applies the change of a slice to the pools of its Service; nil means no
// slice.
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

// editsBetween returns the edits from one list to the other. It sorts both.
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

// countChanged updates the counts of the pool, and returns the endpoints that changed.
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

// incrementalBackends returns the lists of a port: the previous ones with the changes, or
// if the choice is different, new ones.
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
		// A list that was cut off cannot be updated.
		p.chosen, p.choice = p.all.len() <= MaxEndpoints, c
		return p.backends
	}
	for _, l := range c.lists(&p.backends) {
		l.all = l.all.apply(editsIn(changed, l.has, p.width), p.width, &m.stats.Work)
	}
	return p.backends
}

// editsIn returns the edits by which changed endpoints affect a list whose members has
// accepts.
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
