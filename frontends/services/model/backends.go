package model

import (
	"fmt"
)

// source says which endpoints of a Service's slices belong together: those of a
// port in one family. Without a protocol it is those of all ports, as addresses with
// the port 0.
type source struct {
	name     word
	protocol Protocol
	family   Family
}

// gather appends the endpoints that a slice has of a source. They are sorted in runs.
func (m *Model) gather(all []entry, s *slice, of source) []entry {
	if s.family != of.family {
		return all
	}
	had := len(all)
	zones := m.zoneTraits(s)
	if of.protocol == 0 {
		if len(s.ports) > 0 {
			all = s.gather(all, 0, zones)
		}
	} else {
		for i := range s.ports {
			if q := &s.ports[i]; q.name == of.name && q.protocol == of.protocol {
				all = s.gather(all, q.number, zones)
			}
		}
	}
	m.stats.Work += uint64(1 + len(all) - had)
	return all
}

// merged returns the endpoints that all slices of a Service have of a source, sorted,
// repeats included. The result is valid until the next call.
func (m *Model) merged(r *record, of source) []entry {
	all := m.merger.start()
	for s := r.slices; s != nil; s = s.next {
		all = m.gather(all, s, of)
	}
	return m.merger.finish(all)
}

// backends chooses the endpoints of one port in one family.
func (m *Model) backends(s *service, p *servicePort, f Family) Backends {
	of := source{name: p.name, protocol: p.protocol, family: f}
	if s.of.large != nil {
		return m.pooled(s, p, m.pool(s.of, of))
	}
	all := firsts(m.merged(s.of, of), widthOf(f))
	c := count(all, widthOf(f))
	return m.divide(s, p, all, c.choose(s, p), widthOf(f))
}

// count counts what decides.
func count(all []entry, width int) (c tally) {
	for i := range all {
		c.add(traits(all[i][width-1]), 1)
	}
	return c
}

// divide puts endpoints, sorted and without repeats, into the lists that a choice has
// them in.
func (m *Model) divide(s *service, p *servicePort, all []entry, c choice, width int) (b Backends) {
	for _, l := range c.lists(&b) {
		l.all = m.take(s, p, all, l.has, width)
	}
	if b.Local.Equal(b.Cluster) {
		b.Local = b.Cluster
	}
	return b
}

// take returns the endpoints that want holds for.
func (m *Model) take(s *service, p *servicePort, all []entry, want func(traits) bool, width int) *tree {
	packed, n := m.merger.packed[:0], 0
	for i := range all {
		t := traits(all[i][width-1])
		if !want(t) {
			continue
		}
		if n++; n <= MaxEndpoints {
			packed = append(append(packed, all[i][:width-1]...), localMark(t))
		}
	}
	m.merger.packed = packed
	if n > MaxEndpoints {
		m.crowd(s, p, n)
	}
	return rooted(inLeaves(packed, width))
}

// localMark returns the mark of an endpoint in a list.
func localMark(t traits) byte {
	if t.local() {
		return markLocal
	}
	return 0
}

// crowd reports once for a Service that a port has more endpoints than can be
// used.
func (m *Model) crowd(s *service, p *servicePort, n int) {
	if s.crowded {
		return
	}
	s.crowded = true
	var f findings
	f.add("spec.ports["+p.name.Value()+"]", fmt.Errorf("%d endpoints: only the first %d are used", n, MaxEndpoints))
	m.tell("Service", s.of.key, nil, f)
}

// localReady counts the addresses of ready endpoints on this node, over all the
// ports of the slices, for each family that the Service has. Terminating ones
// do not count: the load balancer should stop to send (rule 121).
func (m *Model) localReady(s *service) (out [Families]int) {
	for f := range Families {
		of, w := source{family: f}, widthOf(f)
		switch {
		case !s.clusterIPs[f].IsValid():
		case s.of.large != nil:
			p := m.pool(s.of, of)
			p.catchUp(&m.stats.Work)
			out[f] = p.tally.local
		default:
			c := count(firsts(m.merged(s.of, of), w), w)
			out[f] = c.local
		}
	}
	return out
}
