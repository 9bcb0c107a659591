package aggregator

import (
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
)

// clock is a time that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// TestSlowPublisherIsPaced charges commits to publishers, and checks whose updates are
// taken when.
func TestSlowPublisherIsPaced(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	q, costs := newQueue(c.now), map[*submission]int{}
	of := func(publishers ...string) (s []*submission) {
		for _, p := range publishers {
			s = append(s, &submission{update: &desired.Update{Fragment: desired.Key{Publisher: p}}})
		}
		return s
	}
	want := func(updates, want string) {
		t.Helper()
		enqueue(q, costs, updates)
		if got := drained(q, costs); got != want {
			t.Fatalf("batches %q: want %q", got, want)
		}
	}
	want("a:1 b:1", "a0 b1")
	// It is not known who was slow: each is alone once.
	q.charge(of("a", "b"), time.Second)
	want("a:1 a:1 b:1", "a0 a1 | b2")
	q.charge(of("b"), time.Millisecond)
	q.charge(of("a"), time.Second)
	want("a:1 b:1 b:1", "b1 b2")
	if q.ready() || q.len() != 1 {
		t.Fatalf("%d wait: want that of a, which pauses", q.len())
	}
	c.at = c.at.Add(activeFor)
	want("b:1", "b0")
	c.at = c.at.Add((maxShare - 1) * time.Second)
	want("", "a0")
	// Without others there is no pause.
	q.charge(of("a"), time.Second)
	c.at = c.at.Add(2 * activeFor)
	want("a:1", "a0")
	// Nor at a stop.
	q.charge(of("a"), time.Second)
	want("b:1 a:1", "b0")
	q.endPauses()
	want("", "a1")
}

// TestHeldLane holds a lane while its first update is staged.
func TestHeldLane(t *testing.T) {
	q, costs := newQueue(time.Now), map[*submission]int{}
	enqueue(q, costs, "a:5000 a:1")
	s := q.take(func(s *submission) int { return costs[s] })[0]
	q.hold(s)
	enqueue(q, costs, "b:1 a:2")
	if got := drained(q, costs); got != "b0" || q.ready() || q.len() != 3 {
		t.Fatalf("batches %q; %d wait", got, q.len())
	}
	q.release(s, false)
	if got := drained(q, costs); got != "a0 | a1 a1" {
		t.Fatalf("batches %q", got)
	}
	q.hold(s)
	q.release(s, true)
	if q.len() != 0 || len(q.lanes) != 0 {
		t.Fatalf("%d wait, lanes %v", q.len(), q.lanes)
	}
}
