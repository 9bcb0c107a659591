package daemon

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// clockJump exceeds usual corrections of time servers.
	clockJump = 10 * time.Second
	// clockRecent is longer than a condition takes to become an event.
	clockRecent = 90 * time.Second
)

// wallClock compares the wall clock with the monotonic clock to notice steps. It is safe for
// concurrent use.
type wallClock struct {
	log *slog.Logger
	// has a monotonic clock reading
	start time.Time

	mu sync.Mutex
	// at the last look
	wall   time.Time
	uptime time.Duration
	// zero without a step
	by, at time.Duration
}

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

func signed(d time.Duration) string {
	d = d.Round(time.Second)
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}

func (c *wallClock) check() error {
	now := time.Now()
	// Round removes the monotonic clock reading, which Sub would use.
	return c.look(now.Round(0), now.Sub(c.start))
}
