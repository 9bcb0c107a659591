package conditions

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReportsThatItGotWorse reports a degraded condition, and once more when it lasts as not ready.
func TestReportsThatItGotWorse(t *testing.T) {
	s := newScene(t)
	remedy := ". Remedy: " + KindOf("services").Remedy + "."
	wait := func() {
		t.Helper()
		s.Report()
		s.now = s.now.Add(2 * hold)
		s.Report()
	}
	s.slow = errors.New("slow")
	wait()
	s.services = errors.New("refused")
	s.Report()
	want := []string{"Warning WeftDegraded services: slow" + remedy}
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("events at once (-want +got):\n%s", diff)
	}
	wait()
	s.services = nil
	wait()
	s.slow = nil
	wait()
	want = append(want, "Warning WeftDegraded services: refused"+remedy, "Normal WeftRecovered services: ok again after 3m0s: refused")
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
