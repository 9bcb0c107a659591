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

// session is the connection to the aggregator, for one fragment.
type session struct {
	client   *client.Client
	session  *client.Session
	fragment string
}

// open waits for an aggregator, and restores the fragment of an earlier process. It
// returns nil if ctx ends before.
func (p *Publisher[K, V]) open(ctx context.Context) *session {
	c := p.dial(ctx)
	if c == nil {
		return nil
	}
	if !p.restore(ctx, c) {
		c.Close()
		return nil
	}
	return &session{client: c, fragment: p.cfg.Fragment, session: c.Session(client.SessionConfig{
		Snapshot: func(string) *weftv1.Fragment { return p.cfg.Renderer.Snapshot() }, OnSync: p.onSync,
	})}
}

// dial waits for an aggregator; it returns nil when ctx ends.
func (p *Publisher[K, V]) dial(ctx context.Context) *client.Client {
	logged := ""
	for {
		c, err := client.Dial(ctx, client.Config{Socket: p.cfg.Socket, Publisher: p.cfg.Publisher, Logger: p.log})
		if err == nil {
			return c
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
// update changes nothing that is right. It returns false when ctx ends.
func (p *Publisher[K, V]) restore(ctx context.Context, c *client.Client) bool {
	for {
		resp, err := c.Get(ctx, "", p.cfg.Fragment)
		switch {
		case err == nil:
			p.cfg.Renderer.Restore(resp.GetFragment())
			return true
		case errors.Is(err, client.ErrUnavailable):
			if !pause(ctx, dialRetry) {
				return false
			}
		case ctx.Err() != nil:
			return false
		default:
			if !errors.Is(err, client.ErrNotFound) {
				p.log.Warn("cannot read the fragment of an earlier process: its content may be arranged differently", "error", err)
			}
			return true
		}
	}
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

func (s *session) put(f *weftv1.Fragment) *client.Pending { return s.session.StartPut(f) }

func (s *session) patch(patch *weftv1.Patch) *client.Pending { return s.session.StartPatch(patch) }

// get returns the committed fragment, nil if it cannot be read.
func (s *session) get(ctx context.Context) *weftv1.Fragment {
	got, err := s.client.Get(ctx, "", s.fragment)
	if err != nil {
		return nil
	}
	return got.GetFragment()
}

func (s *session) close() {
	_ = s.session.Close()
	_ = s.client.Close()
}

// takenOver reports whether another process publishes the fragment.
func takenOver(err error) bool {
	var rejected *client.RejectedError
	return errors.As(err, &rejected) && rejected.Has(weftv1.Violation_REASON_TAKEN_OVER)
}

func errTakenOver(err error) error {
	return fmt.Errorf("another process of this node publishes it, run only one: %w", err)
}
