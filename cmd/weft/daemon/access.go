package daemon

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator/access"
)

// openAccess reads the file that says who may publish what, and follows its changes
// and SIGHUP. Without a file SIGHUP ends the process, as it does by default.
func openAccess(ctx context.Context, g *errgroup.Group, p aggregatorParts) (*access.Control, error) {
	control, err := access.Open(access.Options{File: p.accessFile, Logger: p.log, Registerer: p.registry})
	if err != nil || p.accessFile == "" {
		return control, err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	g.Go(func() error {
		defer signal.Stop(hangup)
		return control.Follow(ctx, hangup)
	})
	return control, nil
}
