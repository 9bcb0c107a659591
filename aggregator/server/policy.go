package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
)

const (
	// patience is how long a unary call waits for a publisher's rate. A longer wait is refused.
	patience = time.Second
	// forever is the patience of a stream. While it waits, the stream is not read, and the
	// publisher's writing blocks.
	forever = -1
)

type pacer struct {
	access *access.Control

	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

func newPacer(c *access.Control) *pacer {
	return &pacer{access: c, limiters: make(map[string]*rate.Limiter)}
}

// limiter returns nil without a rate in the current configuration.
func (p *pacer) limiter(pub *access.Publisher, name string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pub == nil || pub.Limits.UpdatesPerSecond == 0 {
		delete(p.limiters, name)
		return nil
	}
	limit, burst := rate.Limit(pub.Limits.UpdatesPerSecond), pub.Limits.Burst
	l := p.limiters[name]
	if l == nil {
		l = rate.NewLimiter(limit, burst)
		p.limiters[name] = l
	}
	l.SetLimit(limit)
	l.SetBurst(burst)
	return l
}

// wait waits for a publisher's next update. If the wait would exceed patience, it returns a
// *retryError at once; a negative patience has no end.
//
// Possible errors: a *retryError with a *access.Refusal, ctx's.
func (p *pacer) wait(ctx context.Context, publisher string, patience time.Duration) error {
	for {
		changed, pub := p.access.Changed(), p.access.Publisher(publisher)
		l := p.limiter(pub, publisher)
		if l == nil {
			return nil
		}
		r := l.Reserve()
		delay := r.Delay()
		if delay <= 0 {
			return nil
		}
		if patience >= 0 && delay > patience {
			r.Cancel()
			return &retryError{error: pub.TooFast(delay.Round(10 * time.Millisecond).String()), delay: delay}
		}
		select {
		case <-time.After(delay):
			return nil
		case <-changed:
			r.Cancel()
		case <-ctx.Done():
			r.Cancel()
			return ctx.Err()
		}
	}
}

type retryError struct {
	error
	delay time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

func (c caller) report(method string, err error) {
	if err == nil || c.access == nil {
		return
	}
	var refusal *access.Refusal
	var rejected *aggregator.RejectedError
	switch {
	case errors.As(err, &refusal):
		c.access.Refused(&c.Peer, refusal, method)
	case errors.As(err, &rejected):
		for _, r := range rejected.Refusals {
			c.access.Refused(&c.Peer, r, method)
		}
	}
}

func (c caller) foreign(publisher string) error {
	if publisher == c.Publisher {
		return nil
	}
	return c.administrator("touch fragments of " + publisher)
}

func (c caller) administrator(what string) error {
	if c.Admin {
		return nil
	}
	return &access.Refusal{
		Limit: access.LimitAdmin, Publisher: c.Publisher,
		Text: fmt.Sprintf("publisher %s may not %s: that takes root, the aggregator's own user, or a publisher with admin: true%s", c.Publisher, what, c.Root()),
	}
}
