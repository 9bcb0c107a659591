package cyclonus

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var stepCount = flag.Int("cyclonus.steps", 60, "how many steps each order has, taken at random; 0 means all")

// TestPackets sends packets between pods on three nodes, first without weft, to try the probes, and
// then while weft enforces policies.
//
// Policy behaviour: 8, 19, 28, 29, 43-45, 47, 48, 51, 58-60, 64.
func TestPackets(t *testing.T) {
	n, err := newNetwork()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("seed %d", *seed)
	if !t.Run("probes", func(t *testing.T) { probes(t, n) }) {
		t.FailNow()
	}
	w, err := newWorld(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("steps", func(t *testing.T) { allOrders(t, w) })
	t.Run("opening", func(t *testing.T) { opening(t, w) })
	t.Run("services", func(t *testing.T) { withServices(t, w) })
	t.Run("pods", func(t *testing.T) { podStates(t, w) })
	t.Logf("TCP connections: %d cut, %d times kept", w.connections.cut, w.connections.kept)
}

// allOrders enforces the oracle's steps in order, at random, and with a restart of weft during each
// change.
func allOrders(t *testing.T, w *world) {
	rng := rand.New(rand.NewPCG(*seed, 0))
	steps := allSteps(t, w.places)
	sample := func(steps []*step) []*step {
		n := *stepCount
		if n == 0 {
			return steps
		}
		chosen := rng.Perm(len(steps))[:min(n, len(steps))]
		slices.Sort(chosen)
		var some []*step
		for _, i := range chosen {
			some = append(some, steps[i])
		}
		return some
	}
	shuffled := slices.Clone(steps)
	rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	t.Run("in order", func(t *testing.T) { w.run(t, sample(steps), nil) })
	t.Run("at random", func(t *testing.T) { w.run(t, sample(shuffled), nil) })
	t.Run("restarted", func(t *testing.T) {
		w.run(t, sample(shuffled), func(i int) error {
			d := w.daemons[i%len(w.daemons)]
			if err := d.stop(i%2 == 0); err != nil {
				return err
			}
			return d.start()
		})
	})
}

// before may be nil.
func (w *world) run(t *testing.T, steps []*step, before func(int) error) {
	flows, rounds, failed := 0, 0, 0
	start := time.Now()
	for i, s := range steps {
		if i%50 == 49 {
			t.Logf("%d of %d steps, %d rounds, %s", i, len(steps), rounds, time.Since(start).Round(time.Second))
		}
		if before != nil {
			if err := before(i); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.api.set(s.cluster(w.places)); err != nil {
			t.Fatal(err)
		}
		want := s.expected(w.places)
		flows += len(want)
		d, n, err := w.agree(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		rounds += n
		if err := w.err(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if len(d) == 0 {
			for _, line := range w.connections.differ(t.Context(), want) {
				t.Errorf("%s: %s", s.name, line)
			}
		} else {
			w.report(t, s, d)
			if failed++; failed == 5 {
				t.Fatal("too many failed steps")
			}
		}
	}
	t.Logf("%d steps, %d flows, %d rounds, %s", len(steps), flows, rounds, time.Since(start).Round(time.Second))
}

// report also keeps the rulesets.
func (w *world) report(t *testing.T, s *step, d []difference) {
	t.Helper()
	c := s.cluster(w.places)
	for i, one := range d {
		if i == 6 {
			break
		}
		t.Errorf("%s: %s: %s", s.name, one, c.Evaluate(one.Flow))
	}
	file := filepath.Join(logDir, fmt.Sprintf("failed-%d.txt", time.Now().UnixNano()))
	if err := os.WriteFile(file, []byte(s.name+"\n"+w.rulesets(t.Context())), 0o600); err != nil {
		t.Error(err)
	}
	t.Errorf("%s: %d differences; rulesets in %s", s.name, len(d), file)
}
