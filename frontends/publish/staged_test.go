package publish

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// oneByOne is names as a Renderer that sends one item in each update.
type oneByOne struct {
	*names
	queue []Change[string, string]
	// early is how many items were reported as committed before their update.
	early int
}

func (o *oneByOne) Render(items []Change[string, string], patch bool) Update {
	for _, c := range items {
		o.queue = slices.DeleteFunc(o.queue, func(q Change[string, string]) bool { return q.Key == c.Key })
	}
	o.queue = append(o.queue, items...)
	if len(o.queue) == 0 {
		return Update{}
	}
	next := o.queue[:1]
	o.queue = o.queue[1:]
	return o.names.Render(next, patch)
}

func (o *oneByOne) Pending() bool { return len(o.queue) > 0 }

func (o *oneByOne) Waits(key string) bool {
	return slices.ContainsFunc(o.queue, func(c Change[string, string]) bool { return c.Key == key })
}

func (o *oneByOne) Committed(items []Change[string, string]) {
	o.names.Committed(items)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(items) > 1 {
		o.early += len(items) - 1
	}
}

// TestStages sends the updates of a change at once, whatever the interval between two
// changes is, and reports each item with its own.
func TestStages(t *testing.T) {
	agg, o := publishtest.New(t), &oneByOne{names: newNames()}
	runAs(t, o.names, o, Config[string, string]{Observer: o, MinInterval: time.Second, MaxRetry: time.Minute}, agg)
	await(t, "the empty snapshot", func() bool { return o.p.Status().Published })
	want := make(map[string]string)
	for _, k := range strings.Fields("a b c d e f g h i j") {
		want[k] = "1"
	}
	began := time.Now()
	o.want(want)
	await(t, "all items", func() bool { return len(agg.Elements()) == len(want) && o.backlog.Oldest().IsZero() })
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("ten stages took %v", took)
	}
	publishtest.Equal(t, "updates", strings.Join(agg.Updates(), " "), "snapshot"+strings.Repeat(" patch", len(want)))
	await(t, "the answer", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.settled > 0
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.early > 0 || o.settled != 1 {
		t.Errorf("%d items were reported before their update, everything was in force %d times", o.early, o.settled)
	}
}

// TestStageRejected leaves out the item whose stage is rejected, named or not.
func TestStageRejected(t *testing.T) {
	for _, named := range []bool{true, false} {
		agg, o := publishtest.New(t), &oneByOne{names: newNames()}
		agg.Judge(rejects(named, "bad"))
		runAs(t, o.names, o, Config[string, string]{Observer: o, MaxRetry: time.Second}, agg)
		await(t, "the empty snapshot", func() bool { return o.p.Status().Published })
		o.want(map[string]string{"a": "1", "b": "bad", "c": "1"})
		await(t, "the items but one", func() bool { return published(agg) == "a=1 c=1" && o.left() == "b" })
	}
}

// TestBacklog adds, takes, fails and commits: the oldest uncommitted event counts.
//
// Behaviour: 125.
func TestBacklog(t *testing.T) {
	clock := publishtest.NewClock()
	began := clock.Now()
	q := NewBacklog(clock.Now)
	check := func(what string, since time.Duration, services, slices int) {
		t.Helper()
		want := time.Time{}
		if since >= 0 {
			want = began.Add(since)
		}
		n, m := q.Length("service"), q.Length("slice")
		if got := q.Oldest(); !got.Equal(want) || n != services || m != slices {
			t.Errorf("%s: %d and %d events wait since %v, want %d and %d since %v", what, n, m, got, services, slices, want)
		}
	}
	const none = -1
	check("empty", none, 0, 0)
	q.Add(events(1, 2))
	clock.Move(1)
	q.Add(events(1, 0))
	check("two batches", 0, 2, 2)
	q.Take()
	q.fail()
	check("taken", 0, 2, 2)
	clock.Move(1)
	q.Add(events(0, 1))
	q.Take()
	check("taken twice", 0, 2, 3)
	clock.Move(1)
	q.Add(events(3, 0))
	if since := q.commit(); !since.Equal(began) {
		t.Errorf("the commit has waited since %v", since)
	}
	check("what came during the commit", 3, 3, 0)
	clock.Move(1)
	q.Restart()
	check("counted from the start", 4, 3, 0)
	q.Take()
	q.commit()
	check("all settled", none, 0, 0)
	q.fail()
	check("a failure without an event", 4, 0, 0)
	if since := q.commit(); since.IsZero() || !q.commit().IsZero() {
		t.Errorf("the failure waited since %v", since)
	}
	clock.Move(1)
	q.Add(events(1, 0))
	q.Take()
	q.setFrozen(true)
	q.commit()
	check("a family is refused", 5, 0, 0)
	clock.Move(1)
	q.Add(events(1, 0))
	q.setFrozen(true)
	check("refused again, and another event", 5, 1, 0)
	q.setFrozen(false)
	check("the family is back", 6, 1, 0)
	q.Take()
	q.commit()
	q.setFrozen(true)
	check("refused without an event", 6, 0, 0)
}

// events counts events of two kinds.
func events(services, slices int) map[string]int {
	return map[string]int{"service": services, "slice": slices}
}

// TestChangeSet: of an item the first Old and the last New stay, and a large set does not
// keep its memory.
func TestChangeSet(t *testing.T) {
	var s changeSet[int, int]
	values := [3]int{1, 2, 3}
	for i := range keepRoom + 1 {
		s.add([]Change[int, int]{{Key: i, Old: &values[0], New: &values[1]}, {Key: i, Old: &values[1], New: &values[2]}})
	}
	out := s.take(cmp.Compare[int])
	if len(out) != keepRoom+1 || s.items != nil {
		t.Fatalf("%d changes, want %d; the memory is kept: %t", len(out), keepRoom+1, s.items != nil)
	}
	for i, c := range out {
		if c.Key != i || c.Old != &values[0] || c.New != &values[2] {
			t.Errorf("change %d is %v", i, c)
		}
	}
	if again := s.take(cmp.Compare[int]); len(again) != 0 {
		t.Errorf("%d changes in an empty set", len(again))
	}
}

// TestSoonest: the zero time means never.
func TestSoonest(t *testing.T) {
	early := time.Unix(1_700_000_000, 0)
	late := early.Add(time.Second)
	for _, tt := range [][3]time.Time{{{}, late, late}, {late, early, early}, {early, late, early}} {
		publishtest.Equal(t, fmt.Sprintf("soonest of %v and %v", tt[0], tt[1]), soonest(tt[0], tt[1]), tt[2])
	}
}

// TestRunEndsBeforeReady: a publisher that ends before everything is known needs no
// aggregator.
func TestRunEndsBeforeReady(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &Publisher[string, string]{cfg: Config[string, string]{Ready: make(chan struct{})}}
	if err := p.Run(ctx); err != nil {
		t.Error(err)
	}
}
