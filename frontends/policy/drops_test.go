package policy

import (
	"fmt"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestDrops sums what rules that drop have counted, of both families.
//
// Policy behaviour: 55.
func TestDrops(t *testing.T) {
	table := &weftv1.GetTableResponse{
		Objects: []*weftv1.MergedObject{
			{Object: &weftv1.Object{Name: "a", Text: "packets 3 bytes 180"}}, {Object: &weftv1.Object{Name: "b", Text: "packets 5 bytes 1"}},
			{Object: &weftv1.Object{Name: "c", Text: "packets x"}}, {Object: &weftv1.Object{Name: "d", Text: ""}},
		},
		Chains: []*weftv1.MergedChain{{Rules: []*weftv1.MergedRule{
			{Rule: &weftv1.Rule{Text: `counter name "a" drop`, Comment: "shop/db,shop/api ingress"}},
			{Rule: &weftv1.Rule{Text: `counter name "a" drop`, Comment: "shop/db,shop/api ingress"}},
			{Rule: &weftv1.Rule{Text: `ct reply ip saddr @s counter name "b" drop`, Comment: `base egress[2] to-dns`}},
			{Rule: &weftv1.Rule{Text: `counter name "c" drop`, Comment: "other"}},
			{Rule: &weftv1.Rule{Text: `counter name "d" drop`, Comment: "empty ingress"}},
			{Rule: &weftv1.Rule{Text: `counter name "b" accept`, Comment: "shop/db ingress[0]"}},
			{Rule: &weftv1.Rule{Text: `counter drop`}},
		}}},
	}
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
	d := newDrops(t.TempDir() + "/none.sock")
	defer d.close()
	out := make(chan prometheus.Metric, 1)
	d.Collect(out)
	if len(out) > 0 {
		t.Error("there are values")
	}
}
