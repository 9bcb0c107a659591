package flows

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
)

// TestPurgeThatEndsEarly removes some entries, fails, and then finds no more: the flows that followed
// the removed entries are compared.
func TestPurgeThatEndsEarly(t *testing.T) {
	runPurger(t, 2*purgeChunk, nil, func(t *testing.T, r *purgeRig) {
		r.kernel.commit = []error{nil, errors.New("no answer")}
		r.Add([]desired.Purge{r.purge}, true)
		r.work(time.Second)
		if len(r.kernel.keys) != purgeChunk || r.removed != 0 {
			t.Errorf("%d entries are left, %d comparisons of flows before the retry", len(r.kernel.keys), r.removed)
		}
		r.publish(t, "tcp dport 80 update @clients { ip saddr timeout 1h : 10.0.0.1 . 80 }")
		r.work(10 * time.Minute)
		if len(r.kernel.keys) != purgeChunk || r.removed != 1 {
			t.Errorf("%d entries are left, %d comparisons of flows, want one", len(r.kernel.keys), r.removed)
		}
	})
}
