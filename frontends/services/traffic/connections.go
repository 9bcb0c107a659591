package traffic

import (
	"maps"
	"net"
	"strconv"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

const others = "others"

// endpoint is empty for a port.
type labels struct{ namespace, service, name, protocol, endpoint string }

func labelsOf(p render.Port, endpoint string) labels {
	name := p.Name
	if name == "" {
		name = strconv.Itoa(int(p.Number))
	}
	return labels{p.Service.Namespace, p.Service.Name, name, p.Protocol.String(), endpoint}
}

func (l labels) port() []string { return []string{l.namespace, l.service, l.name, l.protocol} }

// counts are monotonic sums of kernel counters that may restart.
type counts struct {
	ports, endpoints totals
	dropped          [render.NumDropReasons]uint64
	rejected         map[rejectedKey]uint64
	adopted          bool
	drops            map[dropKey]uint64
}

type dropKey struct{ family, counter string }

type rejectedKey struct {
	family   string
	protocol model.Protocol
}

func newCounts() *counts {
	return &counts{ports: newTotals(maxPorts), endpoints: newTotals(maxEndpoints), drops: make(map[dropKey]uint64), rejected: make(map[rejectedKey]uint64)}
}

// update only records the counts if adopted is true, because they are an earlier process's.
func (c *counts) update(tables []*weftv1.GetTableResponse, ports Ports, adopted bool) {
	c.adopted = adopted
	for _, t := range tables {
		family := t.GetStatus().GetFamily()
		for _, o := range t.GetObjects() {
			c.drop(family, o.GetObject())
		}
		for _, s := range t.GetSets() {
			for _, e := range s.GetSet().GetElements() {
				c.element(family, s.GetSet().GetName(), e, ports)
			}
		}
	}
	c.ports.forget(func(from source) bool {
		p, ok := ports.PortOf(from.family, from.set, from.key)
		return ok && p.Service.String() == from.service
	})
	c.endpoints.forget(func(source) bool { return false })
}

func (c *counts) drop(family string, o *weftv1.Object) {
	k, n := dropKey{family, o.GetName()}, weftv1.Packets(o.GetText())
	more := since(c.drops[k], n)
	if c.adopted {
		more = 0
	}
	if reason, ok := render.DroppedBy(k.counter); ok {
		c.dropped[reason] += more
	} else if protocol, ok := render.RejectedOnLoopback(k.counter); ok {
		c.rejected[rejectedKey{family, protocol}] += more
	} else {
		return
	}
	c.drops[k] = n
}

func (c *counts) element(family, set string, e *weftv1.Element, ports Ports) {
	p, ok := ports.PortOf(family, set, e.GetKey())
	if !ok {
		return // its Service is about to leave
	}
	if p.Affinity && e.GetValue() != "" {
		return // the slot counts only new clients
	}
	to := &c.ports
	endpoint := ""
	if e.GetValue() != "" {
		addr, port, _ := strings.Cut(e.GetValue(), " . ")
		to, endpoint = &c.endpoints, net.JoinHostPort(addr, port)
	}
	// Another Service may get the address.
	to.add(source{family, set, e.GetKey(), e.GetValue(), p.Service.String()}, labelsOf(p, endpoint), e.GetState().Packets(), c.adopted)
}

type source struct{ family, set, key, value, service string }

type seen struct {
	count uint64
	of    labels
	// updates without the element; dumping a growing set may miss one
	missed int
}

type totals struct {
	last map[source]seen
	sums map[labels]uint64
	// elements per series; a series without elements ends
	uses   map[labels]int
	others uint64
	limit  int
}

func newTotals(limit int) totals {
	return totals{last: make(map[source]seen), sums: make(map[labels]uint64), uses: make(map[labels]int), limit: limit}
}

// add starts to count now if adopted is true.
func (t *totals) add(from source, to labels, n uint64, adopted bool) {
	was, ok := t.last[from]
	if !ok {
		if _, ok := t.sums[to]; !ok && len(t.sums) >= t.limit {
			to = labels{service: others}
		} else {
			t.sums[to] += 0
		}
		was.of = to
		t.uses[to]++
	}
	more := since(was.count, n)
	if adopted {
		more = 0
	}
	if was.of.service == others && was.of.namespace == "" {
		t.others += more
	} else {
		t.sums[was.of] += more
	}
	t.last[from] = seen{count: n, of: was.of, missed: -1}
}

// maxMissed is how many successive updates may miss an existing element.
const maxMissed = 2

// An existing missed element restarts at 0.
func (t *totals) forget(exists func(source) bool) {
	for from, s := range t.last {
		if s.missed++; s.missed < maxMissed {
			t.last[from] = s
			continue
		}
		if exists(from) {
			t.last[from] = seen{of: s.of, missed: maxMissed}
			continue
		}
		delete(t.last, from)
		if t.uses[s.of]--; t.uses[s.of] <= 0 {
			delete(t.uses, s.of)
			delete(t.sums, s.of)
		}
	}
}

func (t *totals) bounded() map[labels]uint64 {
	out := maps.Clone(t.sums)
	if t.others > 0 {
		out[labels{service: others}] = t.others
	}
	return out
}

// A smaller value means a restart from 0.
func since(before, now uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}
