package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/conformance/report"
)

// subject is the name of a proxy in the report.
func subject(proxy string) string {
	if *chaosFlag {
		return proxy + "-chaos"
	}
	return proxy
}

func clearResults() error {
	for _, proxy := range proxies() {
		if err := os.RemoveAll(filepath.Join(reportDir, subject(proxy))); err != nil {
			return fmt.Errorf("remove old results: %w", err)
		}
	}
	return nil
}

// results is written with -conformance.update.
const results = "testdata/results.tsv"

// writeResults makes a page if WEFT_PAGES names a directory. A flake or a
// regression is an error.
func writeResults(t *testing.T) {
	runs, err := report.Load(reportDir)
	if err != nil {
		t.Fatal(err)
	}
	table := report.New(runs)
	for _, line := range table.Flakes() {
		t.Errorf("different results: %s", line)
	}
	if dir := os.Getenv("WEFT_PAGES"); dir != "" {
		page, err := table.Markdown()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "conformance.md"), []byte(page), 0o644); err != nil {
			t.Error(err)
		}
	}
	if *updateFlag {
		if err := table.Write(results); err != nil {
			t.Error(err)
		}
		return
	}
	before, err := report.Read(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range table.Regressions(before) {
		t.Errorf("it passed before: %s", line)
	}
}
