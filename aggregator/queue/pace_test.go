package queue

import (
	"fmt"
	"testing"
	"time"
)

// clock is a time that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// noLimits says that no publisher is limited.
func noLimits(string) bool { return false }

// TestSlowPublisherIsPaced charges commits to publishers, and checks whose updates are
// taken when.
func TestSlowPublisherIsPaced(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	q := New[*update](c.now, noLimits)
	of := func(publishers ...string) (s []*update) {
		for _, p := range publishers {
			s = append(s, &update{publisher: p})
		}
		return s
	}
	want := func(updates, want string) {
		t.Helper()
		enqueue(q, updates)
		if got := drained(q); got != want {
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
	if q.Ready() || q.Len() != 1 {
		t.Fatalf("%d wait: want that of a, which pauses", q.Len())
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
	q.EndPauses()
	want("", "a1")
}

// TestSlowAgain charges slow commits to publishers of which one is limited: its second one
// is followed by a pause in which others make many updates.
func TestSlowAgain(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	p := newPace(func(publisher string) bool { return publisher == "hostile" })
	for i, want := range []struct {
		publisher string
		took      time.Duration
		pause     time.Duration
		after     time.Duration
	}{
		{"hostile", 2 * slowFrom, 8 * slowFrom, time.Second},
		{"hostile", slowFrom, 4 * slowFrom, time.Second},
		{"hostile", 2 * slowFrom, slowEvery, slowEvery},
		{"hostile", 2 * slowFrom, 8 * slowFrom, 0},
		{"system", 2 * slowFrom, 8 * slowFrom, 0},
		{"system", 2 * slowFrom, 8 * slowFrom, 0},
		{"system", time.Hour, maxPause, 0},
	} {
		if got := p.pause(want.publisher, want.took, c.at); got != want.pause {
			t.Errorf("commit %d of %s: pause %v, want %v", i, want.publisher, got, want.pause)
		}
		c.at = c.at.Add(want.after)
	}
	for i := range 2 * maxActive {
		name := fmt.Sprint("p", i)
		p.of(name).until, p.of(name).slowAt = c.at, c.at
		c.at = c.at.Add(time.Second)
		p.noteActive(name, c.at)
	}
	if len(p.byPublisher) > maxActive {
		t.Errorf("%d publishers are kept", len(p.byPublisher))
	}
}

// TestMeasureThread compares the time of work and of a wait.
func TestMeasureThread(t *testing.T) {
	used := measureThread()
	<-time.After(50 * time.Millisecond)
	if got := used(); got > 40*time.Millisecond {
		t.Errorf("a wait uses %v of a processor", got)
	}
	used = measureThread()
	for began := threadTime(); threadTime()-began < 5*time.Millisecond; {
	}
	if got := used(); got < 5*time.Millisecond {
		t.Errorf("5 ms of work use %v of a processor", got)
	}
}

// TestMeter commits updates of a publisher that take long: the second one is measured.
func TestMeter(t *testing.T) {
	q := New[*update](time.Now, noLimits)
	updates := []*update{{publisher: "a"}}
	charge := q.Meter(updates, false)
	<-time.After(freeOfCharge + time.Millisecond)
	if charge(); !q.of("a").long || !q.of("a").until.IsZero() {
		t.Errorf("the first long commit: %+v", q.of("a"))
	}
	charge = q.Meter(updates, false)
	for began := threadTime(); threadTime()-began <= freeOfCharge; {
	}
	if charge(); !q.of("a").long || q.of("a").until.IsZero() {
		t.Errorf("the second long commit: %+v", q.of("a"))
	}
	q.noteLong(updates, false)
	if q.of("a").long {
		t.Errorf("after a short commit: %+v", q.of("a"))
	}
}

// TestHeldLane holds a lane while its first update is staged.
func TestHeldLane(t *testing.T) {
	q := New[*update](time.Now, noLimits)
	enqueue(q, "a:5000 a:1")
	s := q.Take(cost)[0]
	q.Hold(s)
	enqueue(q, "b:1 a:2")
	if got := drained(q); got != "b0" || q.Ready() || q.Len() != 3 {
		t.Fatalf("batches %q; %d wait", got, q.Len())
	}
	q.Release(s, false)
	if got := drained(q); got != "a0 | a1 a1" {
		t.Fatalf("batches %q", got)
	}
	q.Hold(s)
	q.Release(s, true)
	if q.Len() != 0 || len(q.lanes) != 0 {
		t.Fatalf("%d wait, lanes %v", q.Len(), q.lanes)
	}
}
