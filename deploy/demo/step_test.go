package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReport: a step is a line, a failure has all details, and the verdict is last.
func TestReport(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	must(t, os.WriteFile(log, []byte("level=WARN msg=\"no endpoints\"\n"), 0o600))
	var out strings.Builder
	d := &demo{out: &out, cluster: &cluster{}, policy: &agent{&process{name: "agent", log: log}}}
	end := func(observed string, err error) func(*demo, context.Context) (string, error) {
		return func(*demo, context.Context) (string, error) { return observed, err }
	}
	err := d.run(t.Context(), []step{
		{name: "first", expect: "x", run: end("seen", nil)},
		{name: "second", expect: "y", run: end("", &skipped{"not here"})},
		{name: "third", expect: "both answer", run: end("one answers", errors.New("timeout")), needed: true},
		{name: "fourth", expect: "z", run: end("", nil)},
	})
	if !errors.Is(err, errFailed) {
		t.Errorf("run: %v, want %v", err, errFailed)
	}
	_, got, _ := strings.Cut(out.String(), "\n\n")
	for _, want := range []string{
		"PASS  1  first: seen (", "SKIP  2  second: not here (", "FAIL  3  third (",
		"expected  both answer\n         observed  one answers; timeout\n    log of agent:\n      level=WARN msg=\"no endpoints\"\n\n1 passed, 1 failed, 1 skipped, in ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "fourth") || strings.Count(got, "\n") != 9 {
		t.Errorf("steps after a needed one that failed, or other lines:\n%s", got)
	}
}
