package sysctl

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// recheck is how often a missing nf_conntrack is looked for. It comes with
// weft's own first chain; nothing depends on these settings in the meantime.
const recheck = 2 * time.Second

// Config says what the system should have.
type Config struct {
	Conntrack Conntrack
	// Root is that of the file system; empty means "/".
	Root string
	// Once does not wait for nf_conntrack where it is not loaded.
	Once bool
	// Tick is when a missing nf_conntrack is looked for; nil means every 2 s.
	Tick <-chan time.Time
	// Logger; nil discards.
	Logger *slog.Logger
}

// Run applies the settings, once nf_conntrack is there. It returns when that is
// done or ctx ends, and always nil: see the package's documentation.
func Run(ctx context.Context, cfg Config) error {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if cfg.Root == "" {
		cfg.Root = "/"
	}
	outcomes, err := cfg.Conntrack.Apply(cfg.Root)
	if errors.Is(err, ErrNotLoaded) {
		log.Info("nf_conntrack is not loaded: its settings follow when the kernel loads it")
		if cfg.Once {
			return nil
		}
		if cfg.Tick == nil {
			ticker := time.NewTicker(recheck)
			defer ticker.Stop()
			cfg.Tick = ticker.C
		}
	}
	for errors.Is(err, ErrNotLoaded) {
		select {
		case <-ctx.Done():
			return nil
		case <-cfg.Tick:
			outcomes, err = cfg.Conntrack.Apply(cfg.Root)
		}
	}
	for _, o := range outcomes {
		if o.Err != nil {
			log.Warn("connection tracking stays as it is: set the value from where it may be set", "file", o.File, "want", o.Want, "have", o.Have, "error", o.Err)
			continue
		}
		log.Info("connection tracking set", "file", o.File, "value", o.Want, "before", o.Have)
	}
	return nil
}
