package access

import (
	"context"
	"os"
	"time"
)

// poll is how often the file is read. Reading it also finds a change that a watch of its
// directory misses: a link to a link, as in a ConfigMap, or a directory that was replaced.
const poll = time.Second

// Follow reads the file every second, and applies it again when it has changed or when
// something arrives on hangup, until ctx ends. Without a file it returns at once.
func (c *Control) Follow(ctx context.Context, hangup <-chan os.Signal) {
	if c.opts.File == "" {
		return
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			_ = c.load(true)
		case <-tick.C:
			_ = c.load(false)
		}
	}
}
