package turns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin begins a turn, as a call does whose request arrives at once.
func begin(ctx context.Context, turns *Turns, caller string) (*Turn, error) {
	turn, err := turns.Enter(caller)
	if err != nil {
		return nil, err
	}
	if err = turn.Rest(ctx); err == nil {
		turn.Work()
		err = turn.Take(ctx)
	}
	if err != nil {
		turn.Leave()
	}
	return turn, err
}

// take begins a turn and ends it after d, of which idle was spent waiting.
func take(t *testing.T, turns *Turns, caller string, d, idle time.Duration) {
	t.Helper()
	turn, err := begin(t.Context(), turns, caller)
	must(t, err)
	defer turn.Leave()
	<-time.After(d)
	turn.End(idle)
}

// TestTurnsRest measures when the next turn of a caller begins.
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
			turns := New("lists flows")
			take(t, turns, "a", tt.took, tt.idle)
			began := time.Now()
			take(t, turns, "b", 0, 0)
			if d := time.Since(began); d != 0 {
				t.Errorf("after %v: another caller waits for %v", tt.took, d)
			}
			take(t, turns, "a", 0, 0)
			if d := time.Since(began); d != tt.rest {
				t.Errorf("after %v, %v of them idle: the caller rests for %v, want %v", tt.took, tt.idle, d, tt.rest)
			}
			<-time.After(2 * maxRest)
			take(t, turns, "d", 0, 0)
			if n := len(turns.byCaller); n > 1 {
				t.Errorf("%d callers are remembered, want at most 1", n)
			}
		})
	}
}

// TestTurnsOfMany has callers with a hundred calls each: each gets its turn, one after the
// other, and what is beyond one waiting call is refused.
func TestTurnsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New("lists flows")
		type outcome struct {
			caller string
			err    error
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
					turn.End(0)
					turn.Leave()
				}
				outcomes <- outcome{name, err}
			}()
		}
		done := map[string]int{}
		for range 300 {
			o := <-outcomes
			switch {
			case o.err == nil:
				done[o.caller]++
			case !errors.Is(o.err, ErrBusy) || !strings.Contains(o.err.Error(), o.caller+" lists flows already"):
				t.Errorf("error %v", o.err)
			}
		}
		for _, name := range []string{"p0", "p1", "p2"} {
			if done[name] != 2 {
				t.Errorf("caller %s had %d turns, want 2", name, done[name])
			}
		}
	})
}

// TestTurnsAreCancelled ends calls that wait: behind a call of the same caller, for the rest,
// and for another caller. Others go on.
func TestTurnsAreCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New("lists flows")
		cancelled := func(caller string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := begin(ctx, turns, caller); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("begin of %s: %v, want the context's error", caller, err)
			}
		}
		turn, err := begin(t.Context(), turns, "a")
		must(t, err)
		cancelled("a")
		cancelled("b")
		<-time.After(time.Second)
		turn.End(0)
		cancelled("a") // the first call has not left
		take(t, turns, "b", 0, 0)
		turn.Leave()
		cancelled("a") // it rests
		take(t, turns, "a", 0, 0)
	})
}

// TestTurnsOfBadRequests has calls that do not come to their turn: the work until then counts, and
// those that end before they are received leave nothing.
func TestTurnsOfBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New("lists flows")
		bad, err := turns.Enter("a")
		if err == nil {
			err = bad.Rest(t.Context())
		}
		must(t, err)
		bad.Work()
		<-time.After(30 * time.Millisecond)
		bad.Leave()
		began := time.Now()
		take(t, turns, "a", 0, 0)
		if d := time.Since(began); d != 300*time.Millisecond {
			t.Errorf("after 30 ms for a bad request the caller rests for %v, want 300 ms", d)
		}
		for range 5 {
			turn, err := turns.Enter("a")
			must(t, err)
			turn.Leave() // it has not begun
		}
		turn, err := turns.Enter("a")
		if err == nil {
			err = turn.Rest(t.Context())
		}
		must(t, err)
		turn.Leave()
		if n := turns.byCaller["a"].calls; n != 0 {
			t.Errorf("%d calls are counted, want 0", n)
		}
	})
}
