package monitoring

import (
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
	"WeftAPIServerUnreachable": {
		[]string{`weft_degraded{` + node + `, condition="api-server"} 0 1x30`},
		[]string{`weft_degraded{` + node + `, condition="api-server"} 0x30`, `weft_degraded{` + node + `, condition="tables"} 1x30`},
	},
	"WeftServicesDegraded": {
		[]string{"weft_ready{" + node + "} 1x30\n" + `weft_degraded{` + node + `, condition="services"} 1x30`},
		[]string{"weft_ready{" + node + "} 0x30\n" + `weft_degraded{` + node + `, condition="services"} 1x30`},
	},
	"WeftConntrackNearlyFull": {
		[]string{"weft_conntrack_limit{" + node + "} 262144x30\nweft_conntrack_entries{" + node + "} 250000x30"},
		[]string{"weft_conntrack_limit{" + node + "} 262144x30\nweft_conntrack_entries{" + node + "} 100000x30"},
	},
	"WeftForeignChanges": {
		[]string{`weft_degraded{` + node + `, condition="tables"} 1x30`},
		[]string{`weft_degraded{` + node + `, condition="tables"} 1 1 0x28`},
	},
	"WeftStateNotStored": {
		[]string{`weft_degraded{` + node + `, condition="state-directory"} 1x30`}, []string{`weft_degraded{` + node + `, condition="state-directory"} 0x30`},
	},
	"WeftConfigurationBroken": {
		[]string{`weft_degraded{` + node + `, condition="configuration"} 1x30`}, []string{`weft_degraded{` + node + `, condition="configuration"} 0x30`},
	},
	"WeftPublisherMissing": {
		[]string{"weft_ready{" + node + "} 1x30\n" + `weft_degraded{` + node + `, condition="publishers"} 1x30`},
		[]string{"weft_ready{" + node + "} 1x30\n" + `weft_degraded{` + node + `, condition="publishers"} 1x10 0x20`},
	},
	"WeftNodeMisfit": {
		[]string{`weft_degraded{` + node + `, condition="node"} 1x30`, `weft_degraded{` + node + `, condition="http"} 1x30`},
		[]string{`weft_degraded{` + node + `, condition="services"} 1x30`},
	},
	"WeftPodInterfaceUnknown": {
		[]string{`weft_degraded{` + node + `, condition="pod-interfaces"} 1x30`}, []string{`weft_degraded{` + node + `, condition="pod-interfaces"} 1x10 0x20`},
	},
	"WeftFragmentRefused": {
		[]string{`weft_degraded{` + node + `, condition="fragments"} 1x30`}, []string{`weft_degraded{` + node + `, condition="fragments"} 1x10 0x20`},
	},
	"WeftTakeoverWaits": {
		[]string{`weft_degraded{` + node + `, condition="takeover"} 1x30`}, []string{`weft_degraded{` + node + `, condition="takeover"} 1x10 0x20`},
	},
	"WeftSecondStarted": {
		[]string{`weft_degraded{` + node + `, condition="socket"} 0x26 1x3`}, []string{`weft_degraded{` + node + `, condition="socket"} 0x28 1`, `weft_degraded{` + node + `, condition="socket"} 0x30`},
	},
	"WeftClockJumped": {
		[]string{`weft_degraded{` + node + `, condition="clock"} 0x28 1`}, []string{`weft_degraded{` + node + `, condition="clock"} 1x10 0x20`},
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
	if len(alerts) != len(cases) {
		t.Errorf("%d alerts, and cases for %d", len(alerts), len(cases))
	}
	for _, a := range alerts {
		c := cases[a.Alert]
		if len(c.raised) == 0 || len(c.quiet) == 0 {
			t.Errorf("alert %s has no cases", a.Alert)
		}
		for _, series := range c.raised {
			firing(t, &a, series, true)
		}
		for _, series := range c.quiet {
			firing(t, &a, series, false)
		}
	}
}

// firing checks an alert at the end of the series.
func firing(t *testing.T, a *Alert, series string, want bool) {
	t.Helper()
	if raised := evaluate(t, a, series); raised != want {
		t.Errorf("alert %s: raised %t, want %t, with\n%s", a.Alert, raised, want, series)
	}
}

// evaluate runs every minute, and reports the alert at the end of the series.
func evaluate(t *testing.T, a *Alert, series string) bool {
	t.Helper()
	hold, err := model.ParseDuration(a.For)
	if err != nil {
		t.Fatal(err)
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(a.Expr)
	if err != nil {
		t.Fatal(err)
	}
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(series, "\n", "\n  ")+"\n")
	t.Cleanup(func() { _ = storage.Close() })
	rule := rules.NewAlertingRule(a.Alert, expr, time.Duration(hold), 0, labels.EmptyLabels(), labels.FromStrings("summary", a.Summary), labels.EmptyLabels(), "", true, nil)
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery), storage)
	minutes := 30
	if hold := int(time.Duration(hold) / time.Minute); hold > 30 {
		minutes = hold + 10
	}
	for i := range minutes {
		if _, err := rule.Eval(t.Context(), 0, time.Unix(int64(i)*60, 0), query, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, active := range rule.ActiveAlerts() {
		if text := active.Annotations.Get("summary"); strings.Contains(text, "error") || strings.Contains(text, "{{") || strings.Contains(text, "<no value>") {
			t.Errorf("alert %s says %q", a.Alert, text)
		}
	}
	return slices.ContainsFunc(rule.ActiveAlerts(), func(a *rules.Alert) bool { return a.State == rules.StateFiring })
}
