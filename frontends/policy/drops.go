package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/render"
)

const metricDropped = "weft_policy_dropped_packets_total"

const (
	scrapeTimeout = 2 * time.Second
	maxDropSeries = 1000 // further ones are counted as others
	others        = "others"
)

type drop struct {
	// As in the comment of the counter.
	policies, direction string
}

// drops reads the kernel's counters at each scrape.
type drops struct {
	connection *connection
	desc       *prometheus.Desc
}

func newDrops(c *connection) *drops {
	return &drops{connection: c, desc: prometheus.NewDesc(metricDropped,
		"Packets that network policies dropped, by the policies that isolate the pods in the direction. It begins again at 0 when their rules are made anew.",
		[]string{"policies", "direction"}, nil)}
}

// Describe implements prometheus.Collector.
func (d *drops) Describe(out chan<- *prometheus.Desc) { out <- d.desc }

// Collect implements prometheus.Collector, without values while the aggregator does not answer.
func (d *drops) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	counts, err := d.read(ctx)
	if err != nil {
		return
	}
	for by, n := range counts {
		out <- prometheus.MustNewConstMetric(d.desc, prometheus.CounterValue, float64(n), by.policies, by.direction)
	}
}

func (d *drops) read(ctx context.Context) (map[drop]uint64, error) {
	c, err := d.connection.open(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[drop]uint64)
	for _, family := range []string{"ip", "ip6"} {
		t, err := c.GetTable(ctx, &weftv1.GetTableRequest{Family: family, Name: render.Table, ObjectsOnly: true, Live: true})
		if errors.Is(err, client.ErrNotFound) {
			continue // the family is not in use
		}
		if err != nil {
			return nil, fmt.Errorf("read dropped packets: %w", err)
		}
		addDrops(out, t)
	}
	return bounded(out), nil
}

func addDrops(to map[drop]uint64, t *weftv1.GetTableResponse) {
	for _, o := range t.GetObjects() {
		if strings.HasPrefix(o.GetObject().GetName(), render.DropCounter+"-") {
			to[dropOf(o.GetObject().GetComment())] += weftv1.Packets(o.GetObject().GetText())
		}
	}
}

func dropOf(comment string) drop {
	for d := range model.NumDirections {
		if i := strings.LastIndex(comment, " "+d.String()); i >= 0 {
			return drop{policies: comment[:i], direction: d.String()}
		}
	}
	return drop{policies: comment}
}

func bounded(in map[drop]uint64) map[drop]uint64 {
	if len(in) <= maxDropSeries {
		return in
	}
	keys := make([]drop, 0, len(in))
	for k := range in {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b drop) int { return strings.Compare(a.policies+" "+a.direction, b.policies+" "+b.direction) })
	for _, k := range keys[maxDropSeries:] {
		in[drop{others, k.direction}] += in[k]
		delete(in, k)
	}
	return in
}
