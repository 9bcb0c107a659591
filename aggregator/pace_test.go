package aggregator

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft/kernel"
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
	q, costs := newQueue(c.now, noLimits), map[*submission]int{}
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
	q := newQueue(time.Now, noLimits)
	updates := []*submission{{update: &desired.Update{Fragment: desired.Key{Publisher: "a"}}}}
	charge := q.meter(updates, false)
	<-time.After(freeOfCharge + time.Millisecond)
	if charge(); !q.of("a").long || !q.of("a").until.IsZero() {
		t.Errorf("the first long commit: %+v", q.of("a"))
	}
	charge = q.meter(updates, false)
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
	q, costs := newQueue(time.Now, noLimits), map[*submission]int{}
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

// TestCausedRepairIsPaid has an update of a publisher cause a comparison with the kernel, which takes long: the
// publisher pauses, although its update was small and its commits before were short.
func TestCausedRepairIsPaid(t *testing.T) {
	for caused, pauses := range map[bool]bool{true: true, false: false} {
		c := &clock{time.Unix(1000, 0)}
		q := newQueue(c.now, noLimits)
		q.noteActive("other", c.at)
		a, err := New(Config{Kernel: dumps{called: func() {
			for began := threadTime(); threadTime()-began < 2*slowFrom; {
			}
		}}})
		if err != nil {
			t.Fatal(err)
		}
		a.queue, a.writer.drift = q, "a refusal"
		if err := a.writer.repairFor([]*submission{{update: &desired.Update{Fragment: desired.Key{Publisher: "a"}}}}, caused); err != nil {
			t.Fatal(err)
		}
		if got := q.paced("a", c.at); got != pauses {
			t.Errorf("the update caused it: %v; its publisher pauses: %v", caused, got)
		}
	}
}

// idle is a kernel that owns nothing and accepts every plan.
type idle struct{ Kernel }

func (idle) Owner() bool             { return false }
func (idle) Check([]kernel.Op) error { return nil }

// dumps is an empty kernel that is called when it is read.
type dumps struct {
	idle
	called func()
}

func (d dumps) Commit([]kernel.Op) (kernel.Stats, error) { return kernel.Stats{}, nil }
func (d dumps) Adopt() ([]kernel.Table, error)           { return nil, nil }
func (d dumps) Dump() ([]kernel.Table, error) {
	d.called()
	return nil, nil
}
