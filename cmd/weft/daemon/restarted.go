package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/policy"
	"github.com/weft-proxy/weft/frontends/services"
)

// restartedWait is how long a frontend waits for an aggregator that says whether its rules are in
// force. Without rules the aggregator answers as soon as it listens.
const restartedWait = time.Second

// publishers returns the names of the frontends of a process.
func (d *daemon) publishers() (names []string) {
	if d.verb.hasServices() {
		names = append(names, services.Publisher)
	}
	if d.hasPolicy() {
		names = append(names, policy.Publisher)
	}
	return names
}

// restarted reports whether the aggregator at socket has rules of one of the publishers, which are
// those of this process before its restart. Without an answer the process counts as new.
func restarted(ctx context.Context, socket string, publishers []string) bool {
	ctx, cancel := context.WithTimeout(ctx, restartedWait)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Socket: socket, DialTimeout: restartedWait})
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	all, err := c.List(ctx)
	if err != nil {
		return false
	}
	for _, f := range all.GetFragments() {
		if slices.Contains(publishers, f.GetFragment().GetPublisher()) && f.GetRules() > 0 {
			return true
		}
	}
	return false
}
