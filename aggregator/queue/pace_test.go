package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// update is an update of a test.
type update struct {
	publisher string
	number    int
	cost      int
}

func (u *update) Publisher() string { return u.publisher }
func (u *update) Size() int         { return u.cost }
func (*update) Queued(at time.Time) {}
func cost(u *update) int            { return u.cost }

// enqueue queues updates written as "publisher:cost", in this order.
func enqueue(q *Queue[*update], updates string) {
	for i, f := range strings.Fields(updates) {
		var cost int
		name, size, _ := strings.Cut(f, ":")
		if _, err := fmt.Sscan(size, &cost); err != nil {
			panic(err)
		}
		q.Put(&update{publisher: name, number: i, cost: cost})
	}
}

// drained takes everything, and writes it as "a0 b1 | a2": publishers and numbers
// of updates, with bars between the batches.
func drained(q *Queue[*update]) string {
	var batches []string
	for {
		var names []string
		for _, s := range q.Take(cost) {
			names = append(names, fmt.Sprint(s.publisher, s.number))
		}
		if names == nil {
			return strings.Join(batches, " | ")
		}
		batches = append(batches, strings.Join(names, " "))
	}
}

func TestLanes(t *testing.T) {
	tests := []struct{ name, updates, want string }{
		{"nothing", "", ""},
		{"small ones of all publishers share a commit", "a:1 b:1 a:1 c:4095", "a0 a2 b1 c3"},
		{"a large one goes alone, after the small ones", "a:4096 b:1 c:1", "b1 c2 | a0"},
		{"what is behind a large one waits for it", "a:1 a:5000 a:2 b:1", "a0 b3 | a1 | a2"},
		{"small and large ones take turns", "a:5000 b:1 b:6000 b:2 c:7000 c:3", "b1 | a0 | b2 | b3 | c4 | c5"},
		{"large ones go round", "a:5000 a:5000 a:5000 b:6000 b:6000", "a0 | b3 | a1 | b4 | a2"},
		{"noLimits has more than a share", "a:3000 a:3000 a:3000 b:1 b:1", "a0 a1 b3 b4 | a2"},
		{"who is alone has more", "a:3000 a:3000 a:3000 a:3000", "a0 a1 a2 a3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := New[*update](time.Now, noLimits)
			enqueue(q, tt.updates)
			if n := len(strings.Fields(tt.updates)); q.Len() != n {
				t.Fatalf("%d wait: want %d", q.Len(), n)
			}
			if got := drained(q); got != tt.want {
				t.Fatalf("batches %q: want %q", got, tt.want)
			}
			if q.Len() != 0 || len(q.lanes) != 0 {
				t.Fatalf("%d wait, lanes %v", q.Len(), q.lanes)
			}
		})
	}
}

func TestClosedQueueReturnsWhatIsLeft(t *testing.T) {
	q := New[*update](time.Now, noLimits)
	enqueue(q, "a:1 b:1 a:9000")
	if left := q.Close(); len(left) != 3 || q.Put(left[0]) || q.Len() != 0 {
		t.Fatalf("%d left, %d wait after the end", len(left), q.Len())
	}
}

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
