package fleet

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// The waits between a node's attempts begin with firstWait, double, and end with maxWait, at least: see
// frontends/source.
const (
	firstWait = 800 * time.Millisecond
	maxWait   = 30 * time.Second
)

// result is the cost of one policy.
type result struct {
	// away is the time from the kill until the server was ready.
	away                      time.Duration
	start, idle, outage, back []second
}

// TestOutage kills the API server, and compares the load of both retry policies.
func TestOutage(t *testing.T) {
	c := startCluster(t)
	results := make(map[string]*result)
	for _, policy := range []string{"capped", "weft"} {
		r := measure(t, c, policy)
		results[policy] = r
		t.Logf("%s: %d nodes, API server away for %.0f s", policy, *nodesFlag, r.away.Seconds())
		for _, phase := range []struct {
			name    string
			seconds []second
		}{{"start", r.start}, {"idle", r.idle}, {"outage", r.outage}, {"back", r.back}} {
			peak, total := load(phase.seconds)
			t.Logf("%-7s %-7s %4d s  peak %6d requests/s  total %7d", policy, phase.name, len(phase.seconds), peak, total)
		}
	}
	before, today := results["capped"], results["weft"]
	for _, phase := range []struct {
		name          string
		before, today []second
	}{
		{"all of the outage", before.outage, today.outage},
		{"outage from its 10th second on", from(before.outage, 10), from(today.outage, 10)},
		{"after the return", before.back, today.back},
	} {
		peak, total := load(phase.before)
		peakToday, totalToday := load(phase.today)
		t.Logf("%s: peak %d, before %d: ratio %.3f; total %d, before %d: ratio %.3f", phase.name, peakToday, peak, ratio(peakToday, peak),
			totalToday, total, ratio(totalToday, total))
	}
	// A closed connection and its pending request are one attempt each.
	_, total := load(today.outage)
	if most := *nodesFlag * (2*watchesPerNode + turns(today.away)); total > most {
		t.Errorf("%d attempts in %v, want %d at most", total, today.away, most)
	}
}

// measure runs nodes with a retry policy through an outage.
func measure(t *testing.T, c *cluster.Cluster, policy string) *result {
	t.Helper()
	n, stop := startNodes(t, c, policy)
	defer stop()
	r := &result{start: n.untilOpen(t), idle: n.during(t, 5*time.Second)}
	n.say(t, "close")
	killed := time.Now()
	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	r.outage = n.during(t, *outageFlag)
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for len(n.seconds) > 0 {
		r.outage = append(r.outage, <-n.seconds)
	}
	r.away = time.Since(killed)
	n.say(t, "open")
	r.back = n.untilOpen(t)
	return r
}

// load returns the maximum of requests in a second, and the total.
func load(seconds []second) (peak, total int) {
	for _, s := range seconds {
		n := s.arrived + s.refused
		peak, total = max(peak, n), total+n
	}
	return peak, total
}

func from(seconds []second, n int) []second { return seconds[min(n, len(seconds)):] }

// 0 if b is 0
func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// turns is the maximum number of a node's attempts in d.
func turns(d time.Duration) int {
	n := 1
	for passed, wait := time.Duration(0), firstWait; ; wait = min(2*wait, maxWait) {
		if passed += wait; passed > d {
			return n
		}
		n++
	}
}

func startCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	if err := errors.Join(os.RemoveAll(runDir), os.MkdirAll(runDir, 0o755), os.MkdirAll(logDir, 0o755)); err != nil {
		t.Fatal(fmt.Errorf("make directories: %w", err))
	}
	l, err := lab.New(lab.Config{Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	c, err := cluster.Start(t.Context(), cluster.Config{Binary: tests.Path(controlPlane), Dir: runDir, LogDir: logDir, Host: l.Control})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}
