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

// clearResults removes the results of earlier runs with the proxies.
func clearResults() error {
	for _, proxy := range proxies() {
		if err := os.RemoveAll(filepath.Join(*reportFlag, subject(proxy))); err != nil {
			return fmt.Errorf("remove old results: %w", err)
		}
	}
	return nil
}

// writeResults makes the JUnit file and the table of all runs. A spec that had different results in the
// runs is an error, and so is one that fails in a short run although the table says that it passes.
func writeResults(t *testing.T) {
	runs, err := report.Load(*reportFlag)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.JUnit(*reportFlag, filepath.Join(*reportFlag, "junit.xml")); err != nil {
		t.Error(err)
	}
	results := report.New(runs)
	for _, line := range results.Flakes() {
		t.Errorf("different results: %s", line)
	}
	if *tableFlag == "" {
		return
	}
	if !*shortFlag {
		if err := results.Write(*tableFlag); err != nil {
			t.Error(err)
		}
		return
	}
	table, err := report.Read(*tableFlag)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range results.Regressions(table) {
		t.Errorf("it passed before: %s", line)
	}
}
