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
	// DefaultWait limits the time until a request of the runtime is answered. So does half the
	// request timeout of the runtime, 1 s by default.
	DefaultWait = 5 * time.Second
	// DefaultForget is the time for which the pods of a disconnected runtime count. A restart of
	// the runtime or of the node's agents takes less.
	DefaultForget = 5 * time.Minute
	// DefaultSyncTimeout limits the time from the connection to the first complete report.
	DefaultSyncTimeout = 30 * time.Second
	// minRetry and maxRetry limit the wait between two attempts to connect. They are short because
	// pods that start meanwhile are unknown until the API reports them.
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
)

// Config describes a Plugin.
type Config struct {
	// Socket is the path of the runtime's socket for plugins. Required.
	Socket string
	// Deliver applies a change to the model, and returns a channel that is closed once a commit has
	// it. Required. One goroutine calls it at a time.
	Deliver func(change func(*model.Model)) (committed <-chan struct{})
	// Wait limits the time until a request is answered; 0 means DefaultWait. So does half the
	// runtime's request timeout.
	Wait time.Duration
	// Forget is the time for which the pods of a disconnected runtime count; 0 means DefaultForget.
	// After it only the pods of the API are known.
	Forget time.Duration
	// SyncTimeout limits the time from the connection to the first complete report; 0 means
	// DefaultSyncTimeout. A slower runtime is disconnected.
	SyncTimeout time.Duration
	// Isolated receives, for each new pod with an address, the runtime's wait for the policies'
	// commit; nil discards. It must not block.
	Isolated func(time.Duration)
	// Logger; nil discards.
	Logger *slog.Logger
}

// Plugin follows the pods of a container runtime.
type Plugin struct {
	cfg      Config
	counters counters
	synced   chan struct{}
	syncOnce sync.Once
}

// New returns a plugin. It does no I/O. An error means that a required field is missing.
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
	// Whether pods of the runtime may count, and when the connection ended.
	known, lost := false, time.Now()
	for {
		s := &session{Plugin: p, changes: make(chan change, maxChanges)}
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
