package nfttest

import "testing"

// recorder is a testing.TB that records how a test ended.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Skip(...any)           { r.skipped = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true }

func TestRequireSkipsOrFails(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("CI", "")
	r := &recorder{TB: t}
	if Require(r, NFT); !r.skipped || r.failed {
		t.Errorf("without CI: %+v, want skipped", r)
	}
	t.Setenv("CI", "true")
	r = &recorder{TB: t}
	if Require(r, NFT); r.skipped || !r.failed {
		t.Errorf("with CI: %+v, want failed", r)
	}
}
