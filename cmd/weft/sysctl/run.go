package sysctl

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// recheck is the pause between looks for nf_conntrack, which the kernel loads with weft's first NAT
// chain.
const recheck = 2 * time.Second

// Config configures Run.
type Config struct {
	Conntrack Conntrack
	// empty means "/"
	Root string
	// Once makes Run return if nf_conntrack is not loaded.
	Once bool
	// may be nil
	Logger *slog.Logger
}

// Run applies the settings once nf_conntrack is loaded. It logs errors and, for errgroup, returns
// nil.
func Run(ctx context.Context, cfg Config) error {
	log, root := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), cmp.Or(cfg.Root, "/")
	outcomes, err := cfg.Conntrack.Apply(root)
	if errors.Is(err, errNotLoaded) {
		log.Info("nf_conntrack is not loaded: its settings will be applied when the kernel loads it")
		if cfg.Once {
			return nil
		}
	}
	for errors.Is(err, errNotLoaded) && cli.Pause(ctx, recheck) {
		outcomes, err = cfg.Conntrack.Apply(root)
	}
	for _, o := range outcomes {
		if o.Err != nil {
			log.Warn("cannot change connection tracking: set the value with sysctl on the node", "file", o.File, "want", o.Want, "have", o.Have, "error", o.Err)
			continue
		}
		log.Info("connection tracking set", "file", o.File, "value", o.Want, "before", o.Have)
	}
	return nil
}
