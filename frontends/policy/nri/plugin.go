package nri

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

const (
	// DefaultWait limits the time until an answer.
	DefaultWait = 5 * time.Second
	// DefaultForget is longer than a restart of the runtime or of the node's agents.
	DefaultForget = 5 * time.Minute
	// DefaultSyncTimeout limits the time until the first complete report.
	DefaultSyncTimeout = 30 * time.Second
	// Pods that start during this wait are unknown until the API reports them.
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
)

// Config describes a Plugin.
type Config struct {
	// Required.
	Socket string
	// Deliver applies a change, and returns a channel that is closed once a commit has it.
	// Required. One goroutine calls it at a time.
	Deliver func(change func(*model.Model)) (committed <-chan struct{})
	// Wait limits the time until an answer; half the runtime's request timeout limits it too. 0 means
	// DefaultWait.
	Wait time.Duration
	// Pods of a disconnected runtime count for Forget; 0 means DefaultForget.
	Forget time.Duration
	// A slower runtime is disconnected. 0 means DefaultSyncTimeout.
	SyncTimeout time.Duration
	// Isolated receives the runtime's wait for each new pod with an address, and must not block;
	// nil discards.
	Isolated func(time.Duration)
	// Nil discards.
	Logger *slog.Logger
}

// Plugin follows the pods of a container runtime.
type Plugin struct {
	cfg      Config
	counters counters
	synced   chan struct{}
	syncOnce sync.Once
}

// New returns a plugin; an error means that a required field is missing.
func New(cfg Config) (*Plugin, error) {
	if cfg.Socket == "" || cfg.Deliver == nil {
		return nil, errors.New("configure NRI plugin: Socket and Deliver are required")
	}
	cfg.Wait = cmp.Or(cfg.Wait, DefaultWait)
	cfg.Forget = cmp.Or(cfg.Forget, DefaultForget)
	cfg.SyncTimeout = cmp.Or(cfg.SyncTimeout, DefaultSyncTimeout)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)).With("socket", cfg.Socket)
	if cfg.Isolated == nil {
		cfg.Isolated = func(time.Duration) {}
	}
	return &Plugin{cfg: cfg, synced: make(chan struct{})}, nil
}

// Synced returns a channel that is closed once the runtime has reported all its pods.
func (p *Plugin) Synced() <-chan struct{} { return p.synced }

// Run follows the runtime until ctx ends, and reconnects when the runtime restarts.
func (p *Plugin) Run(ctx context.Context) {
	retry, reported := minRetry, ""
	known, lost := false, time.Now()
	for {
		s := &session{Plugin: p, changes: make(chan delivery, maxChanges)}
		s.wait.Store(int64(p.cfg.Wait))
		err := s.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if s.complete.Load() {
			retry, reported, known, lost = minRetry, "", true, time.Now()
		}
		if text := err.Error(); text != reported {
			p.cfg.Logger.Warn("no connection to the container runtime: new pods are not known before the API reports them", "error", text)
			reported = text
		}
		if known && time.Since(lost) >= p.cfg.Forget {
			known = false
			p.cfg.Logger.Warn("the container runtime does not come back: forgot the pods that the API does not know", "after", p.cfg.Forget)
			// The runtime no longer reports their end, and other pods get their addresses.
			p.apply(func(m *model.Model) { m.SetSandboxes(nil) })
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(retry, p.cfg.Forget)):
		}
		retry = min(2*retry, maxRetry)
	}
}

func (p *Plugin) apply(change func(*model.Model)) (committed <-chan struct{}) {
	return p.cfg.Deliver(func(m *model.Model) {
		change(m)
		p.counters.sandboxes.Store(int64(m.Stats().Sandboxes))
	})
}
