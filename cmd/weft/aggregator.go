package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
)

func newAggregatorCmd() *cobra.Command {
	var (
		logs logging
		http endpoints
		agg  aggregatorFlags
	)
	cmd := &cobra.Command{
		Use:   "aggregator",
		Short: "The aggregator alone: the socket and the one writer; it needs CAP_NET_ADMIN",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logs.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			sayVersion(log, "aggregator")
			reg := newRegistry()
			return runDaemon(cmd.Context(), func(ctx context.Context, g *errgroup.Group) error {
				daemon, err := agg.start(ctx, g, component(log, "aggregator"), reg)
				if err != nil {
					return err
				}
				return http.serve(ctx, g, reg, daemon.healthy)
			})
		},
	}
	logs.addFlags(cmd.Flags())
	http.addFlags(cmd.Flags())
	agg.addFlags(cmd.Flags())
	return cmd
}

// aggregatorFlags configure the aggregator.
type aggregatorFlags struct {
	socket   string
	stateDir string
	rate     float64
	burst    int
	standby  bool
}

// defaultStateDir outlives a reboot, as durable fragments must.
const defaultStateDir = "/var/lib/weft"

func (a *aggregatorFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.socket, "socket", client.DefaultSocket, "path of the Unix socket")
	flags.StringVar(&a.stateDir, "state-dir", defaultStateDir, "directory of what must outlive a restart")
	flags.Float64Var(&a.rate, "commit-rate", float64(aggregator.DefaultRate), "commits a second under load; 0 means no limit")
	flags.IntVar(&a.burst, "commit-burst", aggregator.DefaultBurst, "commits without a wait after a quiet time")
	flags.BoolVar(&a.standby, "standby", false, "wait while another weft holds the tables, in place of failing")
}

// daemon is a running aggregator.
type daemon struct{ aggregator *aggregator.Aggregator }

// start opens the kernel and the socket, and adds the aggregator and its server
// to g.
func (a *aggregatorFlags) start(ctx context.Context, g *errgroup.Group, log *slog.Logger, reg prometheus.Registerer) (*daemon, error) {
	if a.rate < 0 || a.burst < 1 {
		return nil, usage("--commit-rate %v --commit-burst %d: want at least 0 and 1", a.rate, a.burst)
	}
	limit := rate.Limit(a.rate)
	if a.rate == 0 {
		limit = rate.Inf
	}
	conn, err := kernel.Open(kernel.Config{})
	if err != nil {
		return nil, err
	}
	if !conn.Owner() {
		log.Warn("this kernel cannot protect tables from other processes (that needs Linux 6.9): foreign changes are repaired after they happen")
	}
	flows, err := conntrack.Open()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	agg, err := aggregator.New(aggregator.Config{
		Kernel: conn, Flows: flows, StateDir: a.stateDir, Rate: limit, Burst: a.burst, Standby: a.standby,
		Logger: log, Registerer: reg,
	})
	if err != nil {
		_, _ = conn.Close(), flows.Close()
		return nil, err
	}
	srv, err := server.Listen(server.Config{Socket: a.socket, Aggregator: agg, Logger: log})
	if err != nil {
		_, _ = conn.Close(), flows.Close()
		return nil, err
	}
	g.Go(func() error {
		// The tables stay when the socket that owns them closes.
		defer func() { _, _ = conn.Close(), flows.Close() }()
		return agg.Run(ctx)
	})
	g.Go(func() error { return srv.Serve(ctx) })
	return &daemon{agg}, nil
}

// healthy answers for the health endpoints: starting up counts as healthy.
func (d *daemon) healthy() error {
	if err := d.aggregator.Healthy(); err != nil {
		return fmt.Errorf("aggregator: %w", err)
	}
	return nil
}
