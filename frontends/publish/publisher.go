package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// Config configures a Publisher.
type Config[K comparable, V any] struct {
	// empty means the default
	Socket string
	// Local replaces the socket with an in-process aggregator.
	Local grpc.ClientConnInterface
	// Text is client.Config.Text.
	Text client.Text
	// required
	Publisher, Fragment string
	// Renderer may also be a Cleaner, Parts, Staged or Divisible. Required.
	Renderer Renderer[K, V]
	// required
	Observer Observer[K, V]
	// orders keys; required
	Compare func(a, b K) int
	// closed once all initial items are known; required
	Ready <-chan struct{}
	// required
	Backlog *Backlog
	// Portion bounds the total Renderer.Size of an update; 0 means unbounded. Takeovers between items require
	// a Divisible Renderer.
	Portion int
	// Keep leaves the committed value of an item in force if a limit refuses its new value.
	Keep bool
	// least time between updates
	MinInterval time.Duration
	// after failed updates; at least 1 s
	MaxRetry time.Duration
	// nil means time.Now
	Now func() time.Time
	// nil discards
	Logger *slog.Logger
}

func (c *Config[K, V]) validate() error {
	if c.Publisher == "" || c.Fragment == "" || c.Renderer == nil || c.Observer == nil || c.Compare == nil || c.Ready == nil || c.Backlog == nil {
		return errors.New("configure publisher: Publisher, Fragment, Renderer, Observer, Compare, Ready and Backlog are required")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return nil
}

// Publisher publishes one fragment.
type Publisher[K comparable, V any] struct {
	cfg Config[K, V]
	log *slog.Logger
	// buffered, capacity one
	nudge    chan struct{}
	outcomes outcomes[K]

	mu     sync.Mutex
	status Status
	// content for session resyncs during plans; else nil
	whole *weftv1.Fragment
	// error of a session's own resync, not yet handled
	resync error
}

// New returns a publisher without doing I/O. It fails if a required field is missing.
func New[K comparable, V any](cfg Config[K, V]) (*Publisher[K, V], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Publisher[K, V]{cfg: cfg, log: cfg.Logger, nudge: make(chan struct{}, 1), outcomes: newOutcomes[K]()}, nil
}

// Wake makes Run call Refresh soon.
func (p *Publisher[K, V]) Wake() {
	select {
	case p.nudge <- struct{}{}:
	default:
	}
}

// Run publishes until ctx ends, and leaves the fragment in place. It connects before it waits for
// Config.Ready, so Status is known early. Call it once.
func (p *Publisher[K, V]) Run(ctx context.Context) error {
	c := p.connect(ctx)
	if c == nil {
		return nil
	}
	defer c.Close()
	select {
	case <-ctx.Done():
		return nil
	case <-p.cfg.Ready:
	}
	s := c.Session(client.SessionConfig{
		Snapshot: func(string) *weftv1.Fragment { return p.snapshot() }, OnSync: p.onSync, OnStream: p.onStream,
	})
	defer s.Close()
	l := newLoop(p, c, s)
	for {
		if err := l.step(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("publish %s: %w", p.cfg.Fragment, err)
		}
		if !l.wait(ctx) {
			return nil
		}
	}
}

func (p *Publisher[K, V]) snapshot() *weftv1.Fragment {
	p.mu.Lock()
	whole := p.whole
	p.mu.Unlock()
	if whole != nil {
		return whole
	}
	return p.cfg.Renderer.Snapshot()
}
