package aggregator

import (
	"strings"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestConfigIsValidated lists all that is wrong with a Config.
func TestConfigIsValidated(t *testing.T) {
	_, err := New(Config{Rate: -1, Drain: -1})
	for _, want := range []string{"configure aggregator: ", "no Kernel", "got Rate -1", "negative Retry, Drain"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q in it", err, want)
		}
	}
}

// TestReasonLabel has a label for each reason, and one for those of other versions.
func TestReasonLabel(t *testing.T) {
	for reason, want := range map[weftv1.Violation_Reason]string{weftv1.Violation_REASON_SNAPSHOT_NEEDED: "snapshot_needed", 99: "unknown"} {
		if got := reasonLabel(reason); got != want {
			t.Errorf("reasonLabel(%d) = %q, want %q", reason, got, want)
		}
	}
}
