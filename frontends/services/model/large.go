package model

import (
	"slices"
)

// aLot is how many slices and endpoints make a Service a large one. Below half as
// many it is a small one again: all of what a small one has is looked at when
// anything of it changes, and nothing is kept for that.
const aLot = 512

// large is what is kept for a Service with many endpoints, so that a change costs
// what changes.
type large struct {
	// size is how many slices and endpoints there are.
	size  int
	pools map[source]*pool
	// before are the pools of the computation before the one that goes on.
	before map[source]*pool
}

// pool has the endpoints of one source.
type pool struct {
	width int
	// all are the entries of all slices, repeats included; their marks are traits.
	all *tree
	// seen is what all was when the rest was computed.
	seen  *tree
	tally tally
	// chosen is false until there are backends that changes can be made to.
	chosen   bool
	choice   choice
	backends Backends
}

// turn is an endpoint that was another one, or none, at the same address.
type turn struct {
	was, now string
}

// resize says whether a Service is large before it is computed.
func (m *Model) resize(r *record) {
	l := r.large
	if l != nil && l.size >= m.aLot/2 {
		l.before, l.pools = l.pools, make(map[source]*pool)
		return
	}
	size := 0
	for s := r.slices; s != nil; s = s.next {
		size += 1 + s.len()
		m.stats.Work++
	}
	r.large = nil
	if size >= m.aLot {
		r.large = &large{size: size, pools: make(map[source]*pool)}
	}
}

// pool returns the pool of a source, a new one if need be.
func (m *Model) pool(r *record, of source) *pool {
	p := r.large.before[of]
	if p == nil {
		all, width := m.merged(r, of), widthOf(of.family)
		p = &pool{width: width, all: buildTree(all, width)}
		p.seen, p.tally = p.all, count(firsts(all, width), width)
	}
	r.large.pools[of] = p
	return p
}

// shift changes what is kept for the Service of a slice: nil is no slice.
func (m *Model) shift(was, now *slice) {
	some := now
	if some == nil {
		some = was
	}
	l := some.of.large
	if l == nil {
		return
	}
	for of, p := range l.pools {
		var a, b []entry
		if was != nil {
			a = m.gather(nil, was, of)
		}
		if now != nil {
			b = m.gather(nil, now, of)
		}
		p.all = p.all.with(editsOf(a, b), p.width, &m.stats.Work)
	}
	if was != nil {
		l.size -= 1 + was.len()
	}
	if now != nil {
		l.size += 1 + now.len()
	}
}

// editsOf returns what leads from one list to the other. It sorts them.
func editsOf(was, now []entry) (out []edit) {
	slices.SortFunc(was, compareEntries)
	slices.SortFunc(now, compareEntries)
	for len(was) > 0 || len(now) > 0 {
		order := 0
		if len(was) > 0 && len(now) > 0 {
			order = was[0].compare(&now[0])
		}
		switch {
		case len(now) == 0 || len(was) > 0 && order < 0:
			out = append(out, edit{entry: was[0]})
			was = was[1:]
		case len(was) == 0 || order > 0:
			out = append(out, edit{entry: now[0], add: true})
			now = now[1:]
		default:
			was, now = was[1:], now[1:]
		}
	}
	return out
}

// catchUp counts what the pool has by now and returns which endpoints turned.
func (p *pool) catchUp(work *uint64) (turns []turn) {
	key := p.width - 1
	last := ""
	diffTrees(p.seen, p.all, func(s string, _ bool) bool {
		if s[:key] == last {
			return true
		}
		last = s[:key]
		t := turn{p.seen.first(last, work), p.all.first(last, work)}
		if t.was == t.now {
			return true
		}
		if t.was != "" {
			p.tally.add(traits(t.was[key]), -1)
		}
		if t.now != "" {
			p.tally.add(traits(t.now[key]), 1)
		}
		turns = append(turns, t)
		return true
	}, work)
	*work += uint64(len(turns))
	p.seen = p.all
	return turns
}

// pooled returns the lists of a port: those before with what turned, or if another
// choice is made, new ones.
func (m *Model) pooled(s *service, port *servicePort, p *pool) Backends {
	turns := p.catchUp(&m.stats.Work)
	c := p.tally.choose(s, port)
	if !p.chosen || c != p.choice || p.all.len() > MaxEndpoints {
		all := m.merger.start()
		p.all.each(func(s string) bool {
			var e entry
			copy(e[:], s)
			all = append(all, e)
			return true
		})
		m.stats.Work += uint64(len(all))
		p.backends = m.divide(s, port, firsts(m.merger.finish(all), p.width), c, p.width)
		// A list that was cut short can not be continued.
		p.chosen, p.choice = p.all.len() <= MaxEndpoints, c
		return p.backends
	}
	for _, l := range c.lists(&p.backends) {
		l.all = l.all.with(editsIn(turns, l.has, p.width), p.width, &m.stats.Work)
	}
	return p.backends
}

// editsIn returns what turns of endpoints mean for the list of those that has holds
// for.
func editsIn(turns []turn, has func(traits) bool, width int) (out []edit) {
	in := func(s string) (e entry, ok bool) {
		if s == "" || !has(traits(s[width-1])) {
			return e, false
		}
		copy(e[:], s)
		e[width-1] = localMark(traits(s[width-1]))
		return e, true
	}
	for _, t := range turns {
		was, left := in(t.was)
		now, came := in(t.now)
		switch {
		case left && came && was == now:
		case left && came && was.compare(&now) > 0:
			out = append(out, edit{entry: now, add: true}, edit{entry: was})
		case left && came:
			out = append(out, edit{entry: was}, edit{entry: now, add: true})
		case left:
			out = append(out, edit{entry: was})
		case came:
			out = append(out, edit{entry: now, add: true})
		}
	}
	return out
}
