package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// begin begins a turn, as a call does whose request arrives at once.
func begin(ctx context.Context, turns *callTurns, publisher string) (*callTurn, error) {
	turn, err := turns.enter(publisher)
	if err != nil {
		return nil, err
	}
	if err = turn.rest(ctx); err == nil {
		turn.work()
		err = turn.take(ctx)
	}
	if err != nil {
		turn.leave()
	}
	return turn, err
}

// take begins a turn and ends it after d, of which idle was spent waiting.
func take(t *testing.T, turns *callTurns, publisher string, d, idle time.Duration) {
	t.Helper()
	turn, err := begin(t.Context(), turns, publisher)
	if err != nil {
		t.Fatal(err)
	}
	defer turn.leave()
	<-time.After(d)
	turn.end(idle)
}

// TestTurnsRest measures when the next turn of a publisher begins.
func TestTurnsRest(t *testing.T) {
	for _, tt := range []struct {
		took, idle, rest time.Duration
	}{
		{0, 0, 0},
		{20 * time.Millisecond, 0, 200 * time.Millisecond},
		{time.Second, 0, 10 * time.Second},
		{5 * time.Second, 0, 10 * time.Second},
		{5 * time.Second, 4900 * time.Millisecond, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			turns := newTurns("lists flows")
			take(t, turns, "a", tt.took, tt.idle)
			began := time.Now()
			take(t, turns, "b", 0, 0)
			if d := time.Since(began); d != 0 {
				t.Errorf("after %v: another publisher waits for %v", tt.took, d)
			}
			take(t, turns, "a", 0, 0)
			if d := time.Since(began); d != tt.rest {
				t.Errorf("after %v, %v of them idle: the publisher rests for %v, want %v", tt.took, tt.idle, d, tt.rest)
			}
			<-time.After(2 * maxTurnRest)
			take(t, turns, "d", 0, 0)
			if n := len(turns.byPublisher); n > 1 {
				t.Errorf("%d publishers are remembered, want at most 1", n)
			}
		})
	}
}

// TestTurnsOfMany has publishers with a hundred calls each: each gets its turn, one after the
// other, and what is beyond one waiting call is refused.
func TestTurnsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns("lists flows")
		type outcome struct {
			publisher string
			err       error
		}
		outcomes := make(chan outcome, 1000)
		active := 0
		for i := range 300 {
			go func() {
				name := fmt.Sprint("p", i%3)
				turn, err := begin(t.Context(), turns, name)
				if err == nil {
					if active++; active > 1 {
						t.Errorf("%d turns at a time", active)
					}
					<-time.After(time.Second)
					active--
					turn.end(0)
					turn.leave()
				}
				outcomes <- outcome{name, err}
			}()
		}
		done := map[string]int{}
		for range 300 {
			o := <-outcomes
			switch {
			case o.err == nil:
				done[o.publisher]++
			case !errors.Is(o.err, errLimit) || !strings.Contains(o.err.Error(), "publisher "+o.publisher+" lists flows already"):
				t.Errorf("error %v", o.err)
			}
		}
		for _, name := range []string{"p0", "p1", "p2"} {
			if done[name] != 2 {
				t.Errorf("publisher %s had %d turns, want 2", name, done[name])
			}
		}
	})
}

// TestTurnsAreCancelled ends calls that wait: behind a call of the same publisher, for the rest,
// and for another publisher. Others go on.
func TestTurnsAreCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns("lists flows")
		cancelled := func(publisher string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := begin(ctx, turns, publisher); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("begin of %s: %v, want the context's error", publisher, err)
			}
		}
		turn, err := begin(t.Context(), turns, "a")
		if err != nil {
			t.Fatal(err)
		}
		cancelled("a")
		cancelled("b")
		<-time.After(time.Second)
		turn.end(0)
		cancelled("a") // the first call has not left
		take(t, turns, "b", 0, 0)
		turn.leave()
		cancelled("a") // it rests
		take(t, turns, "a", 0, 0)
	})
}

// TestTurnsOfBadRequests has calls that do not come to their turn: the work until then counts, and
// those that end before they are received leave nothing.
func TestTurnsOfBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns("lists flows")
		bad, err := turns.enter("a")
		if err == nil {
			err = bad.rest(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		bad.work()
		<-time.After(30 * time.Millisecond)
		bad.leave()
		began := time.Now()
		take(t, turns, "a", 0, 0)
		if d := time.Since(began); d != 300*time.Millisecond {
			t.Errorf("after 30 ms for a bad request the publisher rests for %v, want 300 ms", d)
		}
		for range 5 {
			turn, err := turns.enter("a")
			if err != nil {
				t.Fatal(err)
			}
			turn.leave() // it has not begun
		}
		turn, err := turns.enter("a")
		if err == nil {
			err = turn.rest(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		turn.leave()
		if n := turns.byPublisher["a"].calls; n != 0 {
			t.Errorf("%d calls are counted, want 0", n)
		}
	})
}

// TestCallsWithTurns says which calls have turns, and whether administrators have them too.
func TestCallsWithTurns(t *testing.T) {
	got := map[string]bool{}
	for method, turns := range newCallTurns() {
		got[method] = turns.administrators
	}
	want := map[string]bool{
		weftv1.Publisher_Plan_FullMethodName: false, weftv1.History_ListRevisions_FullMethodName: false, weftv1.History_CompareRevisions_FullMethodName: false,
		weftv1.Flows_ListFlows_FullMethodName: true, weftv1.Flows_DeleteFlows_FullMethodName: true,
	}
	if !maps.Equal(got, want) {
		t.Errorf("calls with turns, true if those of administrators too: %v, want %v", got, want)
	}
}
