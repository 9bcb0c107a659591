package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// dialRetry is the time between two attempts to reach an aggregator.
const dialRetry = 500 * time.Millisecond

// connect waits for an aggregator, and restores the fragment of an earlier process. It
// returns nil when ctx ends.
func (p *Publisher[K, V]) connect(ctx context.Context) *client.Client {
	for logged := ""; ; {
		c, err := client.Dial(ctx, client.Config{Socket: p.cfg.Socket, Publisher: p.cfg.Publisher, Logger: p.log})
		if err == nil {
			if err = p.restore(ctx, c); err == nil {
				return c
			}
			_ = c.Close()
		}
		if ctx.Err() == nil && logged != err.Error() {
			logged = err.Error()
			p.log.Warn("no aggregator yet: waiting for it", "error", err)
		}
		if !pause(ctx, dialRetry) {
			return nil
		}
	}
}

// restore has the renderer adopt the fragment of an earlier process, so that the first
// update changes nothing that is right. An error means that the aggregator is away again.
func (p *Publisher[K, V]) restore(ctx context.Context, c *client.Client) error {
	resp, err := c.Get(ctx, "", p.cfg.Fragment)
	switch {
	case err == nil:
		p.cfg.Renderer.Restore(resp.GetFragment())
	case ctx.Err() != nil || errors.Is(err, client.ErrUnavailable):
		return err
	case !errors.Is(err, client.ErrNotFound):
		p.log.Warn("cannot read the fragment of an earlier process: its content may be arranged differently", "error", err)
	}
	return nil
}

// onSync is called with the outcome of each resync after a lost connection.
func (p *Publisher[K, V]) onSync(_ string, revision uint64, err error) {
	if err == nil {
		p.acknowledge(revision, false)
		return
	}
	p.mu.Lock()
	p.resync = err
	p.mu.Unlock()
	p.Wake()
}

// takenOver returns an error if another process publishes the fragment.
func takenOver(err error) error {
	rejected, ok := errors.AsType[*client.RejectedError](err)
	if !ok || !rejected.Has(weftv1.Violation_REASON_TAKEN_OVER) {
		return nil
	}
	return fmt.Errorf("another process of this node publishes it, run only one: %w", err)
}
