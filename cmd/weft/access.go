package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator/access"
)

// openAccess reads the configuration, if there is one, and adds to g what
// follows its changes and SIGHUP. Without one SIGHUP ends the process, as
// always.
func openAccess(ctx context.Context, g *errgroup.Group, file string, log *slog.Logger, reg prometheus.Registerer) (*access.Control, error) {
	control, err := access.Open(access.Options{File: file, Logger: log, Registerer: reg})
	if err != nil || file == "" {
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
