package monitoring

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// the labels of one weft's series
const node = `instance="node-1", job="kube-system/weft"`

// ofCondition are the alerts of a lasting condition. Others are in cases.
var ofCondition = map[string]string{
	"WeftAPIServerUnreachable": "api-server",
	"WeftForeignChanges":       "tables",
	"WeftStateNotStored":       "state-directory",
	"WeftConfigurationBroken":  "configuration",
	"WeftNodeMisfit":           "node",
	"WeftPodInterfaceUnknown":  "pod-interfaces",
	"WeftFragmentRefused":      "fragments",
	"WeftTakeoverWaits":        "takeover",
}

func degraded(condition, samples string) string {
	return fmt.Sprintf("weft_degraded{%s, condition=%q} %s", node, condition, samples)
}

// cases have series for each alert, a sample a minute, that raise it or not.
var cases = map[string]struct{ raised, quiet []string }{
	"WeftDown": {
		[]string{`up{` + node + `} 1 0x30`},
		[]string{`up{` + node + `} 0 0 0 1x27`, `up{instance="x", job="other"} 0x30`},
	},
	"WeftNotReady": {
		[]string{`weft_ready{` + node + `} 0x30`},
		[]string{`weft_ready{` + node + `} 0 0 0 1x27`, `weft_ready{` + node + `} 1x30`},
	},
	"WeftServicesDegraded": {
		[]string{"weft_ready{" + node + "} 1x30\n" + degraded("services", "1x30")},
		[]string{"weft_ready{" + node + "} 0x30\n" + degraded("services", "1x30")},
	},
	"WeftConntrackNearlyFull": {
		[]string{"weft_conntrack_limit{" + node + "} 262144x30\nweft_conntrack_entries{" + node + "} 250000x30"},
		[]string{"weft_conntrack_limit{" + node + "} 262144x30\nweft_conntrack_entries{" + node + "} 100000x30"},
	},
	"WeftPublisherMissing": {
		[]string{"weft_ready{" + node + "} 1x30\n" + degraded("publishers", "1x30")},
		[]string{"weft_ready{" + node + "} 1x30\n" + degraded("publishers", "1x10 0x20")},
	},
	"WeftSecondStarted": {
		[]string{degraded("socket", "0x26 1x3")}, []string{degraded("socket", "0x28 1"), degraded("socket", "0x30")},
	},
	"WeftClockJumped": {
		[]string{degraded("clock", "0x28 1")}, []string{degraded("clock", "1x10 0x20")},
	},
	"WeftProgrammingSlow": {
		[]string{"weft:network_programming_within_1s:ratio_rate1h 0.8x30\nweft:network_programming_within_1s:ratio_rate5m 0.7x30"},
		// It is over, or has only begun.
		[]string{
			"weft:network_programming_within_1s:ratio_rate1h 0.8x30\nweft:network_programming_within_1s:ratio_rate5m 1x30",
			"weft:network_programming_within_1s:ratio_rate1h 0.99x30\nweft:network_programming_within_1s:ratio_rate5m 0.7x30",
		},
	},
	"WeftRejections": {
		[]string{`weft_rejections_total{` + node + `, publisher="team-a", reason="SYNTAX"} 0+1x60`},
		[]string{`weft_rejections_total{` + node + `, publisher="team-a", reason="SYNTAX"} 5x60`, `weft_rejections_total{` + node + `, publisher="team-a", reason="SYNTAX"} 0 1x60`},
	},
	"WeftFlowsNotFlushed": {
		[]string{`weft_flow_flush_errors_total{` + node + `} 0x20 1x10`}, []string{`weft_flow_flush_errors_total{` + node + `} 7x30`},
	},
	"WeftRestarting": {
		[]string{`process_start_time_seconds{` + node + `} 1 2 3 4 5x26`},
		[]string{`process_start_time_seconds{` + node + `} 1 2x30`, `process_start_time_seconds{instance="x", job="other"} 1 2 3 4 5x26`},
	},
	"WeftVersionSkew": {
		[]string{"weft_build_info{instance=\"a\", version=\"v1\"} 1x1500\nweft_build_info{instance=\"b\", version=\"v2\"} 1x1500"},
		[]string{"weft_build_info{instance=\"a\", version=\"v1\"} 1x1500\nweft_build_info{instance=\"b\", version=\"v1\"} 1x1500"},
	},
}

func TestAlerts(t *testing.T) {
	alerts := source(t).Alerts
	if len(alerts) != len(cases)+len(ofCondition) {
		t.Errorf("%d alerts, and cases for %d", len(alerts), len(cases)+len(ofCondition))
	}
	for _, a := range alerts {
		c := cases[a.Alert]
		if condition, ok := ofCondition[a.Alert]; ok {
			c.raised, c.quiet = []string{degraded(condition, "1x30")}, []string{degraded(condition, "1x10 0x20")}
		}
		if len(c.raised) == 0 || len(c.quiet) == 0 {
			t.Errorf("alert %s has no cases", a.Alert)
		}
		for i, series := range slices.Concat(c.raised, c.quiet) {
			if raised, want := evaluate(t, &a, series), i < len(c.raised); raised != want {
				t.Errorf("alert %s: raised %t, want %t, with\n%s", a.Alert, raised, want, series)
			}
		}
	}
}

// ruleOf is an alert that must last for a time.
func ruleOf(a *Alert, hold time.Duration) (*rules.AlertingRule, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(a.Expr)
	if err != nil {
		return nil, err
	}
	summary := labels.FromStrings("summary", a.Summary)
	return rules.NewAlertingRule(a.Alert, expr, hold, 0, labels.EmptyLabels(), summary, labels.EmptyLabels(), "", true, nil), nil
}

func firing(rule *rules.AlertingRule) bool {
	return slices.ContainsFunc(rule.ActiveAlerts(), func(a *rules.Alert) bool { return a.State == rules.StateFiring })
}

// evaluate runs every minute, and reports the alert at the end of the series.
func evaluate(t *testing.T, a *Alert, series string) bool {
	t.Helper()
	hold, err := model.ParseDuration(a.For)
	ok(t, err)
	rule, err := ruleOf(a, time.Duration(hold))
	ok(t, err)
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(series, "\n", "\n  ")+"\n")
	t.Cleanup(func() { _ = storage.Close() })
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery), storage)
	minutes := 30
	if hold := int(time.Duration(hold) / time.Minute); hold > 30 {
		minutes = hold + 10
	}
	for i := range minutes {
		_, err := rule.Eval(t.Context(), 0, time.Unix(int64(i)*60, 0), query, nil, 0)
		ok(t, err)
	}
	for _, active := range rule.ActiveAlerts() {
		if text := active.Annotations.Get("summary"); strings.Contains(text, "error") || strings.Contains(text, "{{") || strings.Contains(text, "<no value>") {
			t.Errorf("alert %s says %q", a.Alert, text)
		}
	}
	return firing(rule)
}
