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
		n, at := w.Lab.Nodes[i], time.Duration(i)
		go func() {
			c.done <- every(ctx, at*killPeriod/time.Duration(len(w.proxies)), killPeriod, func() error { return c.kill(d) })
		}()
		go func() {
			c.done <- every(ctx, at*flushPeriod/time.Duration(len(w.proxies)), flushPeriod, func() error { return c.flush(ctx, n) })
		}()
	}
	return c
}

func (c *chaos) kill(d *daemon) error {
	c.kills.Add(1)
	return d.kill()
}

func (c *chaos) flush(ctx context.Context, n *lab.Node) error {
	c.flushes.Add(1)
	_, err := n.Run(ctx, "nft", "flush", "ruleset")
	if err != nil && strings.Contains(err.Error(), "Interrupted") {
		return nil // another transaction was faster
	}
	return err
}

// stop returns the failures.
func (c *chaos) stop() error {
	c.cancel()
	var errs []error
	for range cap(c.done) {
		errs = append(errs, <-c.done)
	}
	return errors.Join(errs...)
}

// every calls f after the first duration and then in each period, until ctx ends.
func every(ctx context.Context, first, period time.Duration, f func() error) error {
	for timer := time.NewTimer(first); ; timer.Reset(period) {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			if err := f(); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}
