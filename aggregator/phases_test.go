package aggregator_test

import (
	"testing"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestCommitPhases has an update wait for a token, and sees that in the event.
func TestCommitPhases(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Rate: rate.Limit(20), Burst: 1}})
	events := watch(t, d)
	applyAs(t, d, "a", blocklist("list", "10.0.0.1"))
	applyAs(t, d, "a", blocklist("list", "10.0.0.2"))
	commits := 0
	events.until(t, "both commits are told", func(e *weftv1.WatchResponse) bool {
		c := e.GetCommit()
		if c == nil {
			return false
		}
		if c.GetBuild().AsDuration() <= 0 || c.GetKernel().AsDuration() <= 0 {
			t.Errorf("build %v and kernel %v: want both", c.GetBuild(), c.GetKernel())
		}
		// The token of the second comes 50 ms after that of the first.
		if commits++; commits == 2 && c.GetWait().AsDuration() <= 0 {
			t.Errorf("the update waited for %v: want the time to the next token", c.GetWait().AsDuration())
		}
		return commits == 2
	})
}
