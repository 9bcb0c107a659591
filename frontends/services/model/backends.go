package model

import (
	"fmt"
	"slices"
)

// Protocol 0 selects all ports, as addresses with port 0.
type source struct {
	name     interned
	protocol Protocol
	family   Family
}

// From largeSize endpoints on, the model keeps a Service's merged lists.
const largeSize = 128

func (m *Model) gather(all []entry, s *slice, of source) []entry {
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
		at, _ := slices.BinarySearchFunc(s.ports, of, func(p slicePort, of source) int { return p.compare(of.name, of.protocol) })
		for ; at < len(s.ports) && s.ports[at].compare(of.name, of.protocol) == 0; at++ {
			all = s.gather(all, s.ports[at].number, zones)
		}
	}
	m.stats.Work += uint64(1 + len(all) - had)
	return all
}

// merged returns the sorted entries of all slices, with repeats.
func (m *Model) merged(r *record, of source) string {
	if list, ok := r.merged[of]; ok {
		return list
	}
	m.entries = m.entries[:0]
	for s := r.slices; s != nil; s = s.next {
		m.entries = m.gather(m.entries, s, of)
	}
	list := packSorted(m.entries, widths[of.family])
	if r.endpoints >= m.largeSize {
		if r.merged == nil {
			r.merged = make(map[source]string)
		}
		r.merged[of] = list
	}
	return list
}

func (m *Model) updateMerged(r *record, was, now *slice) {
	r.endpoints += now.len() - was.len()
	if r.endpoints < m.largeSize {
		r.merged = nil
	}
	for of, list := range r.merged {
		r.merged[of] = replaceEntries(list, m.gather(nil, was, of), m.gather(nil, now, of), widths[of.family])
	}
}

// selected is packed, without repeats.
func (m *Model) selected(r *record, of source) (list string, c readyCounts) {
	width := widths[of.family]
	list = withoutRepeats(m.merged(r, of), width)
	for i := width - 1; i < len(list); i += width {
		c.add(flags(list[i]))
	}
	m.stats.Work += uint64(len(list) / width)
	return list, c
}

func (m *Model) backends(s *service, p *servicePort, f Family) Backends {
	list, c := m.selected(s.of, source{name: p.name, protocol: p.protocol, family: f})
	return m.partition(s, p, list, c.choose(s, p), widths[f])
}

func (m *Model) partition(s *service, p *servicePort, list string, c choice, width int) (b Backends) {
	b.Cluster = m.filter(s, p, list, c.inCluster, width)
	if c.hasLocal {
		b.Local = m.filter(s, p, list, c.inLocal, width)
	}
	if c.hasDraining {
		b.Draining = m.filter(s, p, list, c.inDraining, width)
	}
	if b.Local.Equal(b.Cluster) {
		b.Local = b.Cluster
	}
	return b
}

func (m *Model) filter(s *service, p *servicePort, list string, want func(flags) bool, width int) Endpoints {
	out := append(append(m.packed[:0], byte(width)), list...)
	m.packed = out
	end := 1
	var last flags
	wanted := want(last)
	for i := 1; i < len(out); i += width {
		t := flags(out[i+width-1])
		if t != last {
			last, wanted = t, want(t)
		}
		if !wanted {
			continue
		}
		if end != i {
			copy(out[end:], out[i:i+width])
		}
		end += width
		out[end-1] = localFlag(t.local())
	}
	if n := end / width; n > MaxEndpoints {
		m.reportTooMany(s, p, n)
		end = 1 + MaxEndpoints*width
	}
	if end == 1 {
		return Endpoints{}
	}
	return Endpoints{string(out[:end])}
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

// Terminating endpoints do not count: load balancers should stop sending (rule 121).
func (m *Model) localReady(s *service) (out [NumFamilies]int) {
	for f := range NumFamilies {
		if s.clusterIPs[f].IsValid() {
			_, c := m.selected(s.of, source{family: f})
			out[f] = c.local
		}
	}
	return out
}
