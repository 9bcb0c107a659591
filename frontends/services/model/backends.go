package model

import (
	"cmp"
	"fmt"
	"net/netip"
)

// candidate is an endpoint of one port, before the choice.
type candidate struct {
	addr  netip.AddrPort
	state state
	traits
}

func (c *candidate) local() bool { return c.traits&onThisNode != 0 }

// compare orders by address; of repeats, those that do not terminate come first
// (rule 66), then those that can be used best. The rest only makes the order
// the same whatever slice came first.
func (c *candidate) compare(d *candidate) int {
	if n := c.addr.Compare(d.addr); n != 0 {
		return n
	}
	return cmp.Or(
		cmp.Compare(c.traits&terminating, d.traits&terminating),
		cmp.Compare(c.state, d.state),
		-cmp.Compare(c.traits&onThisNode, d.traits&onThisNode),
		cmp.Compare(c.traits, d.traits),
	)
}

// backends chooses the endpoints of one port in one family.
func (m *Model) backends(s *service, p *servicePort, f Family) Backends {
	all := m.candidates(s.key, p, f)
	var b Backends
	chosen, near := choose(all, false), nearness(all)
	inCluster := func(c *candidate) bool { return c.state <= chosen && near.fits(c) }
	b.Cluster = m.take(s, p, all, inCluster)
	if s.internalLocal || s.externalLocal {
		here := choose(all, true)
		b.Local = m.take(s, p, all, func(c *candidate) bool { return c.local() && c.state <= here })
	}
	if p.protocol == UDP {
		b.Draining = m.take(s, p, all, func(c *candidate) bool { return c.state <= serving && !inCluster(c) })
	}
	return b
}

// candidates merges the slices of a Service: sorted, without repeats. The
// result is valid until the next call.
func (m *Model) candidates(key Key, p *servicePort, f Family) []candidate {
	all := m.merger.start()
	for _, s := range m.byService[key] {
		if s.family != f {
			continue
		}
		zones := m.zoneTraits(s)
		for i := range s.ports {
			q := &s.ports[i]
			if q.name == p.name && q.protocol == p.protocol {
				all = s.gather(all, q.number, zones)
			}
		}
	}
	return m.merger.finish(all)
}

// gather appends the endpoints of a slice with one port number.
func (s *slice) gather(all []candidate, port uint16, zones []traits) []candidate {
	for i := range s.endpoints {
		e := &s.endpoints[i]
		c := candidate{addr: netip.AddrPortFrom(e.addr, port), state: e.state, traits: e.traits}
		if e.zones != 0 {
			c.traits |= zones[e.zones-1]
		}
		all = append(all, c)
	}
	return all
}

// choose returns the worst state that is used: ready where there is such an
// endpoint, or else leaving (rules 63, 64).
func choose(all []candidate, local bool) state {
	for i := range all {
		if all[i].state == ready && (all[i].local() || !local) {
			return ready
		}
	}
	return leaving
}

// take returns the endpoints that want holds for.
func (m *Model) take(s *service, p *servicePort, all []candidate, want func(*candidate) bool) Endpoints {
	n := 0
	for i := range all {
		if want(&all[i]) {
			n++
		}
	}
	if n == 0 {
		return Endpoints{}
	}
	if n > MaxEndpoints {
		m.crowd(s, p, n)
		n = MaxEndpoints
	}
	out := make([]Endpoint, 0, n)
	for i := range all {
		if len(out) < n && want(&all[i]) {
			out = append(out, Endpoint{Addr: all[i].addr, Local: all[i].local()})
		}
	}
	return Endpoints{out}
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
	m.tell("Service", s.key, nil, f)
}

// localReady counts the addresses of ready endpoints on this node, over all the
// ports of the slices, for each family that the Service has. Terminating ones
// do not count: the load balancer should stop to send (rule 121).
func (m *Model) localReady(s *service) (out [Families]int) {
	all := m.merger.start()
	for _, sl := range m.byService[s.key] {
		if s.clusterIPs[sl.family].IsValid() && len(sl.ports) > 0 {
			all = sl.gather(all, 0, m.zoneTraits(sl))
		}
	}
	for _, c := range m.merger.finish(all) {
		if c.local() && c.state == ready {
			out[FamilyOf(c.addr.Addr())]++
		}
	}
	return out
}
