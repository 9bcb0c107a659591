package model

import (
	"fmt"
	"slices"
)

// source selects endpoints. Protocol 0 selects all ports, as addresses with port 0.
type source struct {
	name     interned
	protocol Protocol
	family   Family
}

// From largeSize endpoints on, the model keeps a Service's merged lists.
const largeSize = 128

// lists computes the lists of endpoints.
type lists struct {
	// of the node
	zone string
	// constant except in tests
	largeSize int
	report    *reporter
	work      uint64
	// room for the next list
	entries []entry
	packed  []byte
}

func (l *lists) shrink() {
	if cap(l.entries) > maxIdleRoom {
		l.entries = nil
	}
	if cap(l.packed) > maxIdleRoom*widthIPv4 {
		l.packed = nil
	}
}

func (l *lists) gather(all []entry, s *slice, of source) []entry {
	if s == nil || s.family != of.family {
		return all
	}
	had := len(all)
	zones := l.zoneFlags(s)
	if of.protocol == 0 {
		if len(s.ports) > 0 {
			all = s.gather(all, 0, zones)
		}
	} else {
		at, _ := slices.BinarySearchFunc(s.ports, of, func(p port, of source) int { return p.compare(of.name, of.protocol) })
		for ; at < len(s.ports) && s.ports[at].compare(of.name, of.protocol) == 0; at++ {
			all = s.gather(all, s.ports[at].number, zones)
		}
	}
	l.work += uint64(1 + len(all) - had)
	return all
}

// merged returns the sorted entries of all slices, with repeats.
func (l *lists) merged(r *record, of source) string {
	if list, ok := r.merged[of]; ok {
		return list
	}
	l.entries = l.entries[:0]
	for s := r.slices; s != nil; s = s.next {
		l.entries = l.gather(l.entries, s, of)
	}
	list := packSorted(l.entries, widths[of.family])
	if r.endpoints >= l.largeSize {
		if r.merged == nil {
			r.merged = make(map[source]string)
		}
		r.merged[of] = list
	}
	return list
}

func (l *lists) update(r *record, was, now *slice) {
	r.endpoints += now.len() - was.len()
	if r.endpoints < l.largeSize {
		r.merged = nil
	}
	for of, list := range r.merged {
		r.merged[of] = replaceEntries(list, l.gather(nil, was, of), l.gather(nil, now, of), widths[of.family])
	}
}

// selected is packed, without repeats.
func (l *lists) selected(r *record, of source) (list string, c readyCounts) {
	width := widths[of.family]
	list = withoutRepeats(l.merged(r, of), width)
	for i := width - 1; i < len(list); i += width {
		c.add(flags(list[i]))
	}
	l.work += uint64(len(list) / width)
	return list, c
}

func (l *lists) backends(s *service, p *servicePort, f Family) (b Backends) {
	list, c := l.selected(s.of, source{name: p.name, protocol: p.protocol, family: f})
	chosen, width := c.choose(s, p), widths[f]
	b.Cluster = l.filter(s, p, list, chosen.inCluster, width)
	if chosen.hasLocal {
		b.Local = l.filter(s, p, list, chosen.inLocal, width)
	}
	if chosen.hasDraining {
		b.Draining = l.filter(s, p, list, chosen.inDraining, width)
	}
	if b.Local.Equal(b.Cluster) {
		b.Local = b.Cluster
	}
	return b
}

func (l *lists) filter(s *service, p *servicePort, list string, want func(flags) bool, width int) Endpoints {
	out := append(append(l.packed[:0], byte(width)), list...)
	l.packed = out
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
		l.reportTooMany(s, p, n)
		end = 1 + MaxEndpoints*width
	}
	if end == 1 {
		return Endpoints{}
	}
	return Endpoints{string(out[:end])}
}

func (l *lists) reportTooMany(s *service, p *servicePort, n int) {
	if s.tooManyReported {
		return
	}
	s.tooManyReported = true
	var f findings
	f.add("spec.ports["+p.name.Value()+"]", fmt.Errorf("%d endpoints: only the first %d are used", n, MaxEndpoints))
	l.report.findings("Service", s.of.key, nil, f)
}

// Terminating endpoints do not count: load balancers should stop sending (rule 121).
func (l *lists) localReady(s *service) (out [NumFamilies]int) {
	for f := range NumFamilies {
		if s.clusterIPs[f].IsValid() {
			_, c := l.selected(s.of, source{family: f})
			out[f] = c.local
		}
	}
	return out
}
