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
		{"quick", func(_ context.Context, _ *node, r *findings) error {
			r.add(Error, "something", "", "")
			return nil
		}},
		{"stuck", func(context.Context, *node, *findings) error {
			close(late)
			<-blocked
			return nil
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
