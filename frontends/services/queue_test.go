package services

import (
	"testing"
	"time"
)

// TestQueue adds, takes, fails and settles: the oldest of what is not committed
// counts.
//
// Behaviour: 125.
func TestQueue(t *testing.T) {
	clock := newHands()
	began := clock.Now()
	q := queue{now: clock.Now}
	check := func(what string, since time.Duration, services, slices int) {
		t.Helper()
		want := time.Time{}
		if since >= 0 {
			want = began.Add(since)
		}
		n, m := q.length()
		if got := q.oldest(); !got.Equal(want) || n != services || m != slices {
			t.Errorf("%s: %d and %d events wait since %v, want %d and %d since %v", what, n, m, got, services, slices, want)
		}
	}
	const none = -1
	check("empty", none, 0, 0)
	q.add(1, 2)
	clock.turn(1)
	q.add(1, 0)
	check("two batches", 0, 2, 2)
	q.take()
	q.fail()
	check("taken", 0, 2, 2)
	clock.turn(1)
	q.add(0, 1)
	q.take()
	check("taken twice", 0, 2, 3)
	clock.turn(1)
	q.add(3, 0)
	if since := q.settle(); !since.Equal(began) {
		t.Errorf("the commit has waited since %v", since)
	}
	check("what came during the commit", 3, 3, 0)
	clock.turn(1)
	q.start()
	check("counted from the start", 4, 3, 0)
	q.take()
	q.settle()
	check("all settled", none, 0, 0)
	q.fail()
	check("a failure without an event", 4, 0, 0)
	if since := q.settle(); since.IsZero() || !q.settle().IsZero() {
		t.Errorf("the failure waited since %v", since)
	}
	clock.turn(1)
	q.add(1, 0)
	q.take()
	q.refuse()
	q.settle()
	check("a family is refused", 5, 0, 0)
	clock.turn(1)
	q.add(1, 0)
	q.refuse()
	check("refused again, and another event", 5, 1, 0)
	q.readmit()
	check("the family is back", 6, 1, 0)
	q.take()
	q.settle()
	q.refuse()
	check("refused without an event", 6, 0, 0)
}
