package monitoring

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

var write = flag.Bool("write", false, "write the files that the source makes")

func source(t *testing.T) *Source {
	t.Helper()
	s, err := Read("source.yaml")
	ok(t, err)
	return s
}

// TestFiles compares the files with the source's result, and checks that Prometheus accepts the rules.
func TestFiles(t *testing.T) {
	files, err := source(t).Files()
	ok(t, err)
	for path, text := range files {
		if *write {
			ok(t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // of a repository
			ok(t, os.WriteFile(path, text, 0o644))        //nolint:gosec // of a repository
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != string(text) {
			t.Errorf("%s is not what the source makes (%v): run make generate", path, err)
		}
	}
	dashboards, err := filepath.Glob(dashboardsDir + "/*")
	ok(t, err)
	for _, path := range dashboards {
		if files[path] == nil {
			t.Errorf("%s is of no dashboard in the source: remove it", path)
		}
	}
	if _, errs := rulefmt.Parse(files[rulesFile], false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler)); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestComplete checks the texts of alerts.
func TestComplete(t *testing.T) {
	seen := make(map[string]bool)
	for _, a := range source(t).Alerts {
		for name, text := range map[string]string{"summary": a.Summary, "meaning": a.Meaning, "diagnosis": a.Diagnosis, "mitigation": a.Mitigation, "for": a.For} {
			if text == "" {
				t.Errorf("alert %s has no %s", a.Alert, name)
			}
		}
		if a.Severity != "critical" && a.Severity != "warning" && a.Severity != "info" {
			t.Errorf("alert %s has the severity %q", a.Alert, a.Severity)
		}
		if seen[a.Alert] {
			t.Errorf("two alerts %s", a.Alert)
		}
		seen[a.Alert] = true
	}
}
