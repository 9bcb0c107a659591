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
	// DefaultWait bounds the wait for the commit of a new pod. Runtimes disconnect a plugin
	// after 2 s by default.
	DefaultWait = 500 * time.Millisecond
	// minRetry and maxRetry bound the wait between two attempts to connect. They are short
	// because pods that start meanwhile are not known before the API reports them.
	minRetry = 100 * time.Millisecond
	maxRetry = 5 * time.Second
)

// Config describes a Plugin.
type Config struct {
	// Socket is the path of the runtime's socket for plugins. Required.
	Socket string
	// Deliver applies a change to the model, and returns a channel that is closed once a
	// commit has it. Required.
	Deliver func(change func(*model.Model)) (committed <-chan struct{})
	// Wait bounds the wait for the commit of a new pod; 0 means DefaultWait. Half the
	// request timeout of the runtime bounds it too.
	Wait time.Duration
	// Logger; nil discards.
	Logger *slog.Logger
}

// Plugin follows the pods of a container runtime.
type Plugin struct {
	cfg Config
	// synced is closed by syncOnce after the first complete report.
	synced   chan struct{}
	syncOnce sync.Once
}

// New returns a plugin. It does no I/O. An error means that a required field is missing.
func New(cfg Config) (*Plugin, error) {
	if cfg.Socket == "" || cfg.Deliver == nil {
		return nil, errors.New("configure NRI plugin: Socket and Deliver are required")
	}
	cfg.Wait = cmp.Or(cfg.Wait, DefaultWait)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)).With("socket", cfg.Socket)
	return &Plugin{cfg: cfg, synced: make(chan struct{})}, nil
}

// Synced returns a channel that is closed once the runtime has reported everything that
// runs.
func (p *Plugin) Synced() <-chan struct{} { return p.synced }

// Run follows the runtime until ctx ends, and connects again when the runtime restarts.
func (p *Plugin) Run(ctx context.Context) {
	retry, reported := minRetry, ""
	for {
		s := &session{Plugin: p, wait: p.cfg.Wait}
		err := s.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if s.isComplete() {
			retry, reported = minRetry, ""
		}
		if text := err.Error(); text != reported {
			p.cfg.Logger.Warn("no connection to the container runtime: new pods are not known before the API reports them", "error", text)
			reported = text
		}
		t := time.NewTimer(retry)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		retry = min(2*retry, maxRetry)
	}
}
