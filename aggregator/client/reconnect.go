package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

type pace struct {
	// bounds of the wait for the next stream; the longest is short, because an aggregator returns
	// within moments (an upgrade)
	backoff, maxBackoff time.Duration
	// replaces maxBackoff if the aggregator refuses the stream
	maxRefused time.Duration
	// after a stream of this duration, the next attempt is at once
	stable time.Duration
	// bounds of the wait before the retry of a refused resync
	retry, maxRetry time.Duration
}

func defaultPace() pace {
	return pace{
		backoff: 20 * time.Millisecond, maxBackoff: 500 * time.Millisecond, maxRefused: 10 * time.Second,
		stable: time.Second, retry: 250 * time.Millisecond, maxRetry: 30 * time.Second,
	}
}

// jitter returns a random time from four fifths of d to d, so that publishers do not reconnect
// together.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/5+1) //nolint:gosec // no secret
}

func (s *Session) run(ctx context.Context) {
	defer close(s.done)
	defer s.outbox.close()
	s.client.keep(ctx, "stream to the aggregator", func(ctx context.Context, opened func()) error {
		s.outbox.restart()
		return s.serve(ctx, opened)
	}, func(err error) {
		if err != nil && !errors.Is(err, ErrUnavailable) {
			// A retry may help later (a limit, a permission), but waiting callers must know.
			s.outbox.fail(err)
		}
		if s.cfg.OnStream != nil {
			s.cfg.OnStream(err)
		}
	})
}

// keep calls serve again and again until ctx ends or the client is closed. serve calls opened when
// its stream is accepted. tell is called with nil then, and with each error of serve.
func (c *Client) keep(ctx context.Context, what string, serve func(ctx context.Context, opened func()) error, tell func(error)) {
	log := c.cfg.Logger.With("socket", c.cfg.Socket)
	pace := c.cfg.pace
	var delay time.Duration
	logged := ""
	for ctx.Err() == nil {
		began, up := time.Now(), false
		err := serve(ctx, func() {
			up = true
			if logged != "" {
				log.Info(what + " is back")
				logged = ""
			}
			tell(nil)
		})
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return
		}
		limit := pace.maxBackoff
		if !errors.Is(err, ErrUnavailable) {
			limit = pace.maxRefused
		}
		tell(err)
		if up && time.Since(began) >= pace.stable {
			delay = 0
		}
		if err.Error() != logged {
			logged = err.Error()
			log.Warn("no "+what+": trying again", "error", err)
		}
		if delay > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(jitter(delay)):
			}
		}
		delay = min(max(pace.backoff, 2*delay), limit)
	}
}
