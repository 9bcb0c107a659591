package aggregator

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, err := newMetrics(reg, func() int { return 5 })
	if err != nil {
		t.Fatal(err)
	}
	m.committed(&weftv1.Counts{ElementsAdded: 3, ElementsDeleted: 1, RulesAdded: 2}, 42, time.Millisecond)
	m.repaired(&weftv1.Counts{ElementsAdded: 1})
	m.rejected(&RejectedError{Violations: []*weftv1.Violation{{Reason: weftv1.Reason_REASON_SYNTAX}, {Reason: weftv1.Reason_REASON_LIMIT}}})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			name := f.GetName()
			for _, l := range s.GetLabel() {
				name += "/" + l.GetValue()
			}
			got[name] = s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		metricCommits: 1, metricCommitSeconds: 1, metricElements + "/added": 4, metricElements + "/deleted": 1,
		metricRules + "/added": 2, metricRules + "/deleted": 0, metricRejections + "/syntax": 1, metricRepairs: 1,
		metricFlows: 0, metricFlowErrors: 0, metricSessions: 0, metricPending: 5, metricRevision: 42,
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s is %v: want %v", name, g, v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("metrics %v: want %d of them", got, len(want))
	}
	if _, err := newMetrics(reg, func() int { return 0 }); err == nil {
		t.Error("registering twice is no error")
	}
	for r := range weftv1.Reason_name {
		if reasonLabel(weftv1.Reason(r)) == "unknown" {
			t.Errorf("reason %v has no label", weftv1.Reason(r))
		}
	}
}
