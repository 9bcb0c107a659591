package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

const (
	dialRetry = 500 * time.Millisecond
	// between logs of an unchanged reason
	logRepeat = time.Minute
)

// connect returns nil when ctx ends.
func (p *Publisher[K, V]) connect(ctx context.Context) *client.Client {
	logged, at := "", time.Time{}
	for {
		c, err := client.Dial(ctx, client.Config{Socket: p.cfg.Socket, Local: p.cfg.Local, Text: p.cfg.Text, Publisher: p.cfg.Publisher, Logger: p.log})
		if err == nil {
			p.failed(nil)
			if err = p.restore(ctx, c); err == nil {
				p.mu.Lock()
				p.status.Connected = true
				p.mu.Unlock()
				return c
			}
			_ = c.Close()
		}
		if ctx.Err() == nil {
			p.failed(err)
			if logged != err.Error() || time.Since(at) >= logRepeat {
				logged, at = err.Error(), time.Now()
				p.log.Warn("cannot use the aggregator: trying again", "error", err)
			}
		}
		if !pause(ctx, dialRetry) {
			return nil
		}
	}
}

// restore fails if the aggregator is away again.
func (p *Publisher[K, V]) restore(ctx context.Context, c *client.Client) error {
	resp, err := c.Get(ctx, "", p.cfg.Fragment)
	switch {
	case err == nil:
		p.cfg.Renderer.Restore(resp.GetFragment())
		p.mu.Lock()
		p.status.Restored = true
		p.mu.Unlock()
	case ctx.Err() != nil || errors.Is(err, client.ErrUnavailable):
		return err
	case !errors.Is(err, client.ErrNotFound):
		p.failed(err)
		p.log.Warn("cannot read the fragment of an earlier process: its content may be arranged differently", "error", err)
	}
	return nil
}

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

func takenOver(err error) error {
	rejected, ok := errors.AsType[*client.RejectedError](err)
	if !ok || !rejected.Has(weftv1.Violation_REASON_TAKEN_OVER) {
		return nil
	}
	return fmt.Errorf("another process of this node publishes it, run only one: %w", err)
}
