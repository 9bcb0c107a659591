package history

import (
	"errors"
	"fmt"
	"testing"
)

// TestUnwritable begins where nothing can be written, and goes on when it can: what waited is
// recorded, and no more than is bounded.
func TestUnwritable(t *testing.T) {
	r := start(t, t.TempDir(), Config{MaxEntries: 2 * maxWaiting})
	r.broken.Store(true)
	for revision := uint64(1); revision <= maxWaiting+100; revision++ {
		r.Record(snapshot(revision, revision > 1, list("a", fmt.Sprint("10.0.", revision/256, ".", revision%256))))
	}
	// Attempts that fail add nothing to what waits.
	const attempts = 5
	for i := range attempts {
		if err := r.Flush(t.Context()); !errors.Is(err, ErrUnavailable) || r.Failing() == nil {
			t.Fatalf("error %v, failing %v", err, r.Failing())
		}
		r.Record(snapshot(uint64(maxWaiting+101+i), true, list("a", "10.0.0.1")))
	}
	r.broken.Store(false)
	for r.Flush(t.Context()) != nil {
	}
	all, _, err := r.List(t.Context(), Query{Reader: everything})
	must(t, err)
	total := 0
	for _, e := range all {
		total += max(1, int(e.GetLost())) //nolint:gosec // small
	}
	if len(all) > maxWaiting+1 || total != maxWaiting+100+attempts || r.lost != 100+attempts {
		t.Fatalf("%d entries for %d commits, %d lost", len(all), total, r.lost)
	}
	if d := compare(t, r, maxWaiting-1, maxWaiting+100+attempts); d.To.State != unknown {
		t.Fatalf("content after the loss: %v", d.To)
	}
}
