package conformance

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const (
	killPeriod  = 2 * time.Second
	flushPeriod = 5 * time.Second
)

// weft's tables have an owner and the flag persist, so the kernel keeps them when the ruleset is
// flushed and when weft is killed.
type chaos struct {
	kills, flushes atomic.Int64
	done           chan error
	cancel         context.CancelFunc
}

// startChaos kills the proxy and flushes the ruleset of every node until stop, at different times.
func (w *world) startChaos(ctx context.Context) *chaos {
	ctx, cancel := context.WithCancel(ctx)
	c := &chaos{done: make(chan error, 2*len(w.proxies)), cancel: cancel}
	for i, d := range w.proxies {
		go func() {
			c.done <- c.kill(ctx, d, killPeriod*time.Duration(i)/time.Duration(len(w.proxies)))
		}()
	}
	for i, n := range w.lab.Nodes {
		go func() {
			c.done <- c.flush(ctx, n, flushPeriod*time.Duration(i)/time.Duration(len(w.lab.Nodes)))
		}()
	}
	return c
}

func (c *chaos) kill(ctx context.Context, d *daemon, first time.Duration) error {
	if !wait(ctx, first) {
		return nil
	}
	return every(ctx, killPeriod, func() error {
		c.kills.Add(1)
		return d.kill()
	})
}

func (c *chaos) flush(ctx context.Context, n *lab.Node, first time.Duration) error {
	if !wait(ctx, first) {
		return nil
	}
	return every(ctx, flushPeriod, func() error {
		c.flushes.Add(1)
		_, err := n.Run(ctx, "nft", "flush", "ruleset")
		if err != nil && strings.Contains(err.Error(), "Interrupted") {
			return nil // another transaction was faster
		}
		return err
	})
}

// stop returns the first failure.
func (c *chaos) stop() error {
	c.cancel()
	var errs []error
	for range cap(c.done) {
		errs = append(errs, <-c.done)
	}
	return errors.Join(errs...)
}

// wait returns false if ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
