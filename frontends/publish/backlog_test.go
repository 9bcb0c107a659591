package publish

import (
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

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
