package daemon

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// clockJump is the least step of the wall clock that is reported. Time servers correct
	// less as they go.
	clockJump = 10 * time.Second
	// clockRecent is for how long a step is reported: longer than it takes to become an event.
	clockRecent = 90 * time.Second
)

// wallClock notices that the wall clock is set, by comparing it with the monotonic clock. Rules,
// retries and deadlines do not depend on it, but the dates in logs and in the history, and
// whether certificates are valid, do. It is safe for concurrent use.
type wallClock struct {
	log *slog.Logger
	// start has a reading of the monotonic clock.
	start time.Time

	mu sync.Mutex
	// wall and uptime are what the clocks said at the last look.
	wall   time.Time
	uptime time.Duration
	// by is the last step, zero if there was none, and at the uptime then.
	by, at time.Duration
}

// look compares the wall clock with the uptime, which is that of the monotonic clock.
func (c *wallClock) look(wall time.Time, uptime time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if step := wall.Sub(c.wall) - (uptime - c.uptime); !c.wall.IsZero() && step.Abs() >= clockJump {
		c.by, c.at = step, uptime
		c.log.Warn("the wall clock jumped", "by", signed(step))
	}
	c.wall, c.uptime = wall, uptime
	if c.by == 0 || uptime-c.at >= clockRecent {
		return nil
	}
	return fmt.Errorf("the wall clock jumped by %s: it was set, or the machine was suspended", signed(c.by))
}

// signed returns a duration in seconds with its sign.
func signed(d time.Duration) string {
	d = d.Round(time.Second)
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}

// check compares the clocks now.
func (c *wallClock) check() error {
	now := time.Now()
	// Round removes the reading of the monotonic clock, so that differences are those of the wall clock.
	return c.look(now.Round(0), now.Sub(c.start))
}
