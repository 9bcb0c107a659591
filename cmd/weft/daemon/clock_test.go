package daemon

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestWallClock reports steps of the wall clock in both directions, and neither corrections nor
// the time that passes.
func TestWallClock(t *testing.T) {
	var log strings.Builder
	c := &wallClock{log: slog.New(slog.NewTextHandler(&log, nil))}
	wall, uptime := time.Unix(1_000_000, 0), time.Minute
	// pass lets time pass, and sets the wall clock.
	pass := func(d, step time.Duration) { wall, uptime = wall.Add(d+step), uptime+d }
	check := func(want string) {
		t.Helper()
		err := c.look(wall, uptime)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check("")
	pass(5*time.Hour, 0)
	check("")
	pass(time.Second, clockJump-time.Second)
	check("")
	for by, want := range map[time.Duration]string{5 * time.Hour: "jumped by +5h0m0s", -3 * time.Hour: "jumped by -3h0m0s"} {
		pass(time.Second, by)
		check(want)
		pass(clockRecent-time.Second, 0)
		check(want)
		pass(time.Second, 0)
		check("")
	}
	if got := strings.Count(log.String(), "the wall clock jumped"); got != 2 {
		t.Errorf("%d lines for 2 steps:\n%s", got, log.String())
	}
}
