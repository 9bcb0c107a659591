package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConditions evaluates the alerts with each condition in turn (testdata/conditions.prom of
// TestViews in cmd/weft/daemon): each raises one alert, and a healthy weft raises no alert. TestViews
// prints the result, testdata/conditions.alerts.
func TestConditions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "conditions.prom"))
	ok(t, err)
	var out strings.Builder
	for section := range strings.SplitSeq(string(text), "# ") {
		what, lines, _ := strings.Cut(section, "\n")
		if what == "" {
			continue
		}
		var series []string
		for line := range strings.Lines(lines) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			metric, of, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
			series = append(series, fmt.Sprintf("%s{%s} %sx30", metric, strings.Trim(node+", "+of, ", "), value))
		}
		var raised []string
		for _, a := range source(t).Alerts {
			if evaluate(t, &a, strings.Join(series, "\n")) {
				raised = append(raised, a.Alert)
			}
		}
		if (len(raised) == 0) != (what == "nothing") {
			t.Errorf("%s: alerts %v are raised", what, raised)
		}
		fmt.Fprintf(&out, "%s: %s\n", what, strings.Join(raised, ", "))
	}
	path := filepath.Join("testdata", "conditions.alerts")
	if *write {
		ok(t, os.WriteFile(path, []byte(out.String()), 0o644)) //nolint:gosec // of a repository
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != out.String() {
		t.Errorf("%s is not what the alerts say now (%v): run make generate", path, err)
	}
}
