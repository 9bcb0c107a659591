package cyclonus

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
)

var stepCount = flag.Int("cyclonus.steps", 60, "how many steps each order has, taken at random; 0 means all")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPackets sends packets between pods on three nodes while weft enforces policies.
//
// Policy behaviour: 8, 19, 28, 29, 43-45, 47, 48, 51, 58-60, 64.
func TestPackets(t *testing.T) {
	t.Logf("seed %d", *seed)
	w := newWorld(t)
	t.Run("steps", func(t *testing.T) { allOrders(t, w) })
	t.Run("opening", func(t *testing.T) { opening(t, w) })
	t.Run("services", func(t *testing.T) { withServices(t, w) })
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
	none := func(int) {}
	t.Run("in order", func(t *testing.T) { w.run(t, sample(steps), none) })
	t.Run("at random", func(t *testing.T) { w.run(t, sample(shuffled), none) })
	t.Run("restarted", func(t *testing.T) {
		w.run(t, sample(shuffled), func(i int) {
			d := w.daemons[i%len(w.daemons)]
			must(t, cmp.Or(d.stop(i%2 == 0), d.start()))
		})
	})
}

func (w *world) run(t *testing.T, steps []*step, before func(int)) {
	flows := 0
	for i, s := range steps {
		before(i)
		c, want := s.cluster(w.places), s.expected(w.places)
		w.api.replace(c)
		w.check(t, s.name, want, c)
		flows += len(want)
	}
	t.Logf("%d steps, %d flows", len(steps), flows)
}
