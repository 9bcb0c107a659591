package daemon

import (
	"context"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/cmd/weft/cli"

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
	config := client.Config{Socket: socket, DialTimeout: restartedWait}
	all, err := cli.Ask(ctx, config, func(c *client.Client) (*weftv1.ListFragmentsResponse, error) { return c.List(ctx) })
	return err == nil && slices.ContainsFunc(all.GetFragments(), func(f *weftv1.FragmentStatus) bool {
		return slices.Contains(publishers, f.GetFragment().GetPublisher()) && f.GetRules() > 0
	})
}
