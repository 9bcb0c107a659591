package model

import (
	"fmt"
	"slices"
)

// source selects endpoints of a Service's slices by port and family. Protocol 0 selects all ports, as
// addresses with port 0.
type source struct {
	name     interned
	protocol Protocol
	family   Family
}

// gather appends a slice's selected endpoints in sorted runs. s may be nil.
func (m *Model) gather(all []packedEndpoint, s *slice, of source) []packedEndpoint {
	if s == nil || s.family != of.family {
		return all
	}
	had := len(all)
	zones := m.zoneFlags(s)
	if of.protocol == 0 {
		if len(s.ports) > 0 {
			all = s.gather(all, 0, zones)
		}
	} else {
		// A Service and its slices may have thousands of ports.
		at, _ := slices.BinarySearchFunc(s.ports, of, func(p slicePort, of source) int { return p.compare(of.name, of.protocol) })
		for ; at < len(s.ports) && s.ports[at].compare(of.name, of.protocol) == 0; at++ {
			all = s.gather(all, s.ports[at].number, zones)
		}
	}
	m.stats.Work += uint64(1 + len(all) - had)
	return all
}

// merged returns the selected endpoints of all slices, sorted, with duplicates. The result is valid until
// the next call.
func (m *Model) merged(r *record, of source) []packedEndpoint {
	all := m.merger.start()
	for s := r.slices; s != nil; s = s.next {
		all = m.gather(all, s, of)
	}
	return m.merger.finish(all)
}

func (m *Model) backends(s *service, p *servicePort, f Family) Backends {
	of := source{name: p.name, protocol: p.protocol, family: f}
	if s.of.incremental != nil {
		return m.incrementalBackends(s, p, m.pool(s.of, of))
	}
	all := withoutRepeats(m.merged(s.of, of), widths[f])
	c := count(all, widths[f])
	return m.partition(s, p, all, c.choose(s, p), widths[f])
}

func count(all []packedEndpoint, width int) (c readyCounts) {
	for i := range all {
		c.add(flags(all[i][width-1]), 1)
	}
	return c
}

// partition distributes sorted, unique endpoints to the lists.
func (m *Model) partition(s *service, p *servicePort, all []packedEndpoint, c choice, width int) (b Backends) {
	for _, l := range c.lists(&b) {
		l.all = m.filter(s, p, all, l.has, width)
	}
	if b.Local.Equal(b.Cluster) {
		b.Local = b.Cluster
	}
	return b
}

func (m *Model) filter(s *service, p *servicePort, all []packedEndpoint, want func(flags) bool, width int) *packedList {
	packed, n := m.merger.packed[:0], 0
	for i := range all {
		t := flags(all[i][width-1])
		if !want(t) {
			continue
		}
		if n++; n <= MaxEndpoints {
			packed = append(append(packed, all[i][:width-1]...), localFlag(t))
		}
	}
	m.merger.packed = packed
	if n > MaxEndpoints {
		m.reportTooMany(s, p, n)
	}
	return packList(appendLeaves(nil, packed, width), width)
}

func localFlag(t flags) byte {
	if t.local() {
		return flagLocal
	}
	return 0
}

func (m *Model) reportTooMany(s *service, p *servicePort, n int) {
	if s.tooManyReported {
		return
	}
	s.tooManyReported = true
	var f findings
	f.add("spec.ports["+p.name.Value()+"]", fmt.Errorf("%d endpoints: only the first %d are used", n, MaxEndpoints))
	m.reportFindings("Service", s.of.key, nil, f)
}

// localReady counts the addresses of ready local endpoints over all ports, per family. Terminating ones
// do not count: load balancers should stop sending (rule 121).
func (m *Model) localReady(s *service) (out [NumFamilies]int) {
	for f := range NumFamilies {
		of, w := source{family: f}, widths[f]
		switch {
		case !s.clusterIPs[f].IsValid():
		case s.of.incremental != nil:
			p := m.pool(s.of, of)
			p.countChanged(&m.stats.Work)
			out[f] = p.readyCounts.local
		default:
			c := count(withoutRepeats(m.merged(s.of, of), w), w)
			out[f] = c.local
		}
	}
	return out
}
