package policy

import (
	"fmt"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestDrops sums what the counters of drops have counted, of both families.
//
// Policy behaviour: 55.
func TestDrops(t *testing.T) {
	counter := func(name, comment, text string) *weftv1.MergedObject {
		return &weftv1.MergedObject{Object: &weftv1.Object{Kind: "counter", Name: name, Comment: comment, Text: text}}
	}
	table := &weftv1.GetTableResponse{Objects: []*weftv1.MergedObject{
		counter("drop-1-a", "shop/db,shop/api ingress", "packets 3 bytes 180"), counter("drop-2-b", "base egress[2] to-dns", "packets 5 bytes 1"),
		counter("drop-3-c", "other", "packets x"), counter("drop-4-d", "empty ingress", ""), counter("rule-5-e", "shop/db ingress[0]", "packets 7 bytes 9"),
	}}
	got := make(map[drop]uint64)
	addDrops(got, table)
	addDrops(got, table)
	want := map[drop]uint64{{"shop/db,shop/api", "ingress"}: 6, {"base", "egress"}: 10, {"other", ""}: 0, {"empty", "ingress"}: 0}
	if !maps.Equal(got, want) {
		t.Errorf("drops %v, want %v", got, want)
	}
}

// TestDropsAreBounded joins what is beyond the limit.
func TestDropsAreBounded(t *testing.T) {
	in := make(map[drop]uint64)
	for i := range maxDropSeries + 10 {
		in[drop{fmt.Sprintf("p%06d", i), "ingress"}] = 1
	}
	if out := bounded(in); len(out) != maxDropSeries+1 || out[drop{others, "ingress"}] != 10 {
		t.Errorf("%d series, of which others are %d", len(out), out[drop{others, "ingress"}])
	}
}

// TestDropsWithoutAggregator has no values while the aggregator is away.
func TestDropsWithoutAggregator(t *testing.T) {
	d := newDrops(&connection{socket: t.TempDir() + "/none.sock"})
	out := make(chan prometheus.Metric, 1)
	d.Collect(out)
	if len(out) > 0 {
		t.Error("there are values")
	}
}
