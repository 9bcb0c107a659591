package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
)

// perSecond returns 0 after a restart, which resets a counter.
func perSecond(before, after uint64, d time.Duration) float64 {
	if after < before || d <= 0 {
		return 0
	}
	return float64(after-before) / d.Seconds()
}

func rate(n float64) string { return fmt.Sprintf("%.1f", n) }

type row struct {
	perSecond float64
	name      string
	cells     []any
}

func byRate(rows []row, columns ...string) *get.Rows {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.perSecond, a.perSecond), strings.Compare(a.name, b.name))
	})
	t := &get.Rows{Columns: columns}
	for _, r := range rows {
		t.Add(r.cells...)
	}
	return t
}

func pending(publishers ...*weftv1.PublisherStatus) (n uint32) {
	for _, p := range publishers {
		for _, s := range p.GetSessions() {
			n += s.GetPending()
		}
	}
	return n
}

func publisherTable(before, after *sample) *get.Rows {
	d := after.at.Sub(before.at)
	old := make(map[string]*weftv1.PublisherStatus)
	for _, p := range before.publishers {
		old[p.GetName()] = p
	}
	rows := cli.Map(after.publishers, func(p *weftv1.PublisherStatus) row {
		was := old[p.GetName()]
		updates, rejected := perSecond(was.GetCommitted(), p.GetCommitted(), d), perSecond(was.GetRejected(), p.GetRejected(), d)
		return row{updates + rejected, p.GetName(), []any{
			p.GetName(), rate(updates), rate(rejected), p.GetRejected(), len(p.GetSessions()), pending(p), p.GetFragments(), p.GetRules(),
		}}
	})
	return byRate(rows, "PUBLISHER", "UPDATES/S", "REJECTED/S", "REJECTED", "SESSIONS", "PENDING", "FRAGMENTS", "RULES")
}

func serviceTable(before, after *sample) *get.Rows {
	type name struct{ service, port string }
	old := make(map[name]uint64)
	for _, p := range before.services {
		old[name{p.service, p.port}] = p.opened
	}
	d := after.countedAt.Sub(before.countedAt)
	rows := cli.Map(after.services, func(p servicePort) row {
		opened := 0.0
		if was, ok := old[name{p.service, p.port}]; ok {
			opened = perSecond(was, p.opened, d)
		}
		return row{opened, p.service + " " + p.port, []any{p.service, p.port, rate(opened), p.endpoints}}
	})
	return byRate(rows, "SERVICE", "PORT", "NEW/S", "ENDPOINTS")
}
