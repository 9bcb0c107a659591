package top

import (
	"cmp"
	"slices"
	"time"
)

// perSecond returns how often something happened in a second. A counter that goes back is of
// a daemon that has restarted.
func perSecond(before, after uint64, d time.Duration) float64 {
	if after < before || d <= 0 {
		return 0
	}
	return float64(after-before) / d.Seconds()
}

// publisherRate is how fast a publisher sends.
type publisherRate struct {
	name                               string
	sessions, pending, fragments       uint32
	rules, rejected                    uint64
	updatesPerSecond, refusedPerSecond float64
}

// publisherRates compares two samples. The publisher with the most updates is the first.
func publisherRates(before, after *sample) []publisherRate {
	d := after.at.Sub(before.at)
	type counts struct{ committed, rejected uint64 }
	old := make(map[string]counts)
	for _, p := range before.publishers {
		old[p.GetName()] = counts{p.GetCommitted(), p.GetRejected()}
	}
	var out []publisherRate
	for _, p := range after.publishers {
		r := publisherRate{name: p.GetName(), fragments: p.GetFragments(), rules: uint64(p.GetRules()), rejected: p.GetRejected()}
		for _, s := range p.GetSessions() {
			r.sessions++
			r.pending += s.GetPending()
		}
		was := old[p.GetName()]
		r.updatesPerSecond = perSecond(was.committed, p.GetCommitted(), d)
		r.refusedPerSecond = perSecond(was.rejected, p.GetRejected(), d)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b publisherRate) int {
		return cmp.Or(cmp.Compare(b.updatesPerSecond+b.refusedPerSecond, a.updatesPerSecond+a.refusedPerSecond), cmp.Compare(a.name, b.name))
	})
	return out
}

// serviceRate is how fast a port of a Service gets connections.
type serviceRate struct {
	*servicePort
	newPerSecond float64
}

// serviceRates compares two samples. The port with the most new connections is the first.
func serviceRates(before, after *sample) []serviceRate {
	type name struct{ service, port string }
	old := make(map[name]*servicePort)
	for _, p := range before.services {
		old[name{p.service, p.port}] = p
	}
	d := after.countedAt.Sub(before.countedAt)
	out := make([]serviceRate, 0, len(after.services))
	for _, p := range after.services {
		r := serviceRate{servicePort: p}
		if was := old[name{p.service, p.port}]; was != nil {
			r.newPerSecond = perSecond(was.opened, p.opened, d)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b serviceRate) int {
		return cmp.Or(cmp.Compare(b.newPerSecond, a.newPerSecond),
			cmp.Compare(a.service, b.service), cmp.Compare(a.port, b.port))
	})
	return out
}
