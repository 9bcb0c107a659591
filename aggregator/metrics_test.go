package aggregator

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft/lint"
)

// Names of the metrics.
const (
	metricCommits       = "weft_commits_total"
	metricCommitSeconds = "weft_commit_duration_seconds"
	metricElements      = "weft_elements_changed_total"
	metricRules         = "weft_rules_changed_total"
	metricRejections    = "weft_rejections_total"
	metricShadowed      = "weft_shadowed_elements"
	metricDropped       = "weft_updates_dropped_total"
	metricRepairs       = "weft_drift_repairs_total"
	metricSessions      = "weft_sessions"
	metricPending       = "weft_pending_updates"
	metricRevision      = "weft_revision"
	metricUnrepaired    = "weft_unrepaired_tables"
	metricStateErrors   = "weft_state_errors_total"
	metricWork          = "weft_aggregator_work_total"
)

var update = flag.Bool("update", false, "write the goldens anew")

// TestMetricsGolden compares names, types, help and labels with what dashboards
// and alerts were written against.
func TestMetricsGolden(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := newMetrics(reg, func() int { return 0 })
	// Rejections have no series before there is one.
	m.rejected(&RejectedError{Fragment: desired.Key{Publisher: "p", Name: "f"}})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		labels := map[string]bool{}
		for _, s := range f.GetMetric() {
			for _, l := range s.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		fmt.Fprintf(&b, "%s{%s} %s: %s\n", f.GetName(), strings.Join(slices.Sorted(maps.Keys(labels)), ","), strings.ToLower(f.GetType().String()), f.GetHelp())
	}
	const golden = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("metrics differ from %s; -update writes it (-want +got):\n%s", golden, diff)
	}
	// The documentation has a table of them.
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.Contains(string(doc), f.GetName()) {
			t.Errorf("doc.go does not tell of %s", f.GetName())
		}
	}
}

func TestPublisherLabelsAreBounded(t *testing.T) {
	m := newMetrics(nil, func() int { return 0 })
	labels := map[string]bool{}
	for i := range 10 * maxPublisherLabels {
		labels[m.publisherLabel(fmt.Sprintf("p%d", i))] = true
	}
	if len(labels) != maxPublisherLabels+1 || !labels[otherPublisher] || m.publisherLabel("p0") != "p0" {
		t.Errorf("%d label values: want %d and %s", len(labels), maxPublisherLabels, otherPublisher)
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := newMetrics(reg, func() int { return 5 })
	m.committed(&weftv1.Counts{ElementsAdded: 3, ElementsDeleted: 1, RulesAdded: 2}, 42, timing{wait: time.Second, build: time.Millisecond, kernel: time.Millisecond})
	m.committed(&weftv1.Counts{RulesDeleted: 1}, 43, timing{})
	m.shadowed.Set(6)
	m.worked(desired.Work{Keys: 3}, desired.Work{Keys: 5, Objects: 1})
	m.repaired(&weftv1.Counts{ElementsAdded: 1}, 44)
	m.rejected(&RejectedError{Fragment: desired.Key{Publisher: "p", Name: "f"}, Violations: []*weftv1.Violation{{Reason: weftv1.Violation_REASON_SYNTAX}, {Reason: weftv1.Violation_REASON_LIMIT}}})
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
		metricWork + "/keys": 2, metricWork + "/rules": 0, metricWork + "/objects": 1, metricWork + "/dumps": 0, metricWork + "/records": 0,
		metricCommits: 2, metricCommitSeconds + "/wait": 1, metricCommitSeconds + "/build": 1, metricCommitSeconds + "/kernel": 1, metricElements + "/added": 4, metricElements + "/deleted": 1,
		metricRules + "/added": 2, metricRules + "/deleted": 1, metricRejections + "/p/syntax": 1, metricDropped: 0, metricShadowed: 6, metricRepairs: 1,
		"weft_flows_flushed_total": 0, "weft_flow_flush_errors_total": 0, metricSessions: 0, metricPending: 5, metricRevision: 44,
		metricUnrepaired: 0, "weft_affinity_purged_total": 0, "weft_affinity_errors_total": 0, metricStateErrors + "/record": 0, metricStateErrors + "/durable": 0, metricStateErrors + "/flows": 0, metricStateErrors + "/history": 0, metricStateErrors + "/unconfirmed": 0,
		"weft_history_lost_total": 0,
	}
	for _, id := range lint.IDs {
		want["weft_findings/"+string(id)] = 0
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s is %v: want %v", name, g, v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("metrics %v: want %d of them", got, len(want))
	}
	for r := range weftv1.Violation_Reason_name {
		if reasonLabel(weftv1.Violation_Reason(r)) == "unknown" {
			t.Errorf("reason %v has no label", weftv1.Violation_Reason(r))
		}
	}
}
