package pods

import (
	"testing"
	"time"
)

// idleCost measures what the nodes use when nothing happens.
func idleCost(t *testing.T, w *world) {
	const during = 20 * time.Second
	for _, p := range w.nodes {
		before, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-time.After(during):
		case <-t.Context().Done():
			return
		}
		after, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		resident, _, err := p.Memory()
		if err != nil {
			t.Fatal(err)
		}
		share := 100 * float64(after-before) / float64(during)
		t.Logf("%s: %.2f%% of a core, %.0f MiB", p.Name, share, resident)
		if share > 5 {
			t.Errorf("%s uses %.2f%% of a core when nothing happens", p.Name, share)
		}
	}
}
