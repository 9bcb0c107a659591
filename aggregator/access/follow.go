package access

import (
	"context"
	"os"
	"time"
)

// A watch of the directory would miss changes of a link to a link, as in a ConfigMap, or a replaced
// directory.
const poll = time.Second

// Follow reads the file every second until ctx ends, and applies it after a change or a signal on
// hangup.
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
