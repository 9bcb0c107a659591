package fleet

import "testing"

// TestRestart starts all nodes at once, as new nodes and as nodes whose rules are in force, and
// compares what they ask of the API server in a second.
func TestRestart(t *testing.T) {
	c := startCluster(t)
	seconds := make(map[string][]second)
	for _, policy := range []string{"weft", "restarted"} {
		n, stop := startNodes(t, c, policy)
		seconds[policy] = n.untilOpen(t)
		stop()
		peak, total := load(seconds[policy])
		t.Logf("%-9s %4d s  peak %6d requests/s  total %7d", policy, len(seconds[policy]), peak, total)
	}
	peak, total := load(seconds["weft"])
	peakSpread, totalSpread := load(seconds["restarted"])
	t.Logf("%d nodes restart at once: peak %d requests/s, %d without the spread: ratio %.3f; total %d and %d", *nodesFlag, peakSpread, peak, ratio(peakSpread, peak), totalSpread, total)
	// What a restart costs is the same: a list and a watch of each kind, or both in one.
	if most := 2 * watchesPerNode * *nodesFlag; totalSpread > most {
		t.Errorf("%d requests of %d nodes, want %d at most", totalSpread, *nodesFlag, most)
	}
}
