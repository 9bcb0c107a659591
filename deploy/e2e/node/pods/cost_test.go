package pods

import (
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// idleCost measures the CPU of idle nodes.
func idleCost(t *testing.T, w *world) {
	const (
		during = 10 * time.Second
		limit  = 3 // percent of a core
	)
	before := map[*lab.Process]time.Duration{}
	for _, p := range w.nodes {
		before[p] = cpu(t, p)
	}
	select {
	case <-time.After(during):
	case <-t.Context().Done():
		return
	}
	for _, p := range w.nodes {
		share := 100 * float64(cpu(t, p)-before[p]) / float64(during)
		resident, _, err := p.Memory()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.2f%% of a core, %.0f MiB", p.Name, share, resident)
		if share > limit {
			t.Errorf("%s uses %.2f%% of a core when nothing happens, want at most %d%%", p.Name, share, limit)
		}
	}
}

func cpu(t *testing.T, p *lab.Process) time.Duration {
	t.Helper()
	used, err := p.CPU()
	if err != nil {
		t.Fatal(err)
	}
	return used
}
