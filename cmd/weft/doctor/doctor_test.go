package doctor

import (
	"context"
	"path/filepath"
	"testing"
)

// TestLateCheck: a check that does not end is not waited for, and is reported.
func TestLateCheck(t *testing.T) {
	blocked, late := make(chan struct{}), make(chan struct{})
	n := newNode(t.Context(), Config{Root: t.TempDir(), Socket: filepath.Join(t.TempDir(), "none")})
	r := runChecks(t.Context(), late, n, []check{
		{"quick", func(context.Context, *node) ([]Finding, error) {
			return []Finding{{Severity: Error, Found: "something"}}, nil
		}},
		{"stuck", func(context.Context, *node) ([]Finding, error) {
			close(late)
			<-blocked
			return nil, nil
		}},
	})
	close(blocked)
	if len(r.Findings) != 2 {
		t.Fatalf("findings: %+v", r.Findings)
	}
	last := r.Findings[1]
	if last.Check != "stuck" || last.Severity != Unknown || last.Found != errLate.Error() {
		t.Errorf("%+v", r.Findings)
	}
}
