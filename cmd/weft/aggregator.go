package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
)

func newAggregatorCmd() *cobra.Command {
	var (
		logs logging
		http endpoints
		agg  aggregatorFlags
	)
	conf := newConfiguration()
	cmd := &cobra.Command{
		Use:   "aggregator",
		Short: "The aggregator alone: the socket and the one writer; it needs CAP_NET_ADMIN",
		Long: `Run the aggregator alone: the socket and the one writer. It needs CAP_NET_ADMIN.

Told to by a flag, or by a file of kube-proxy's configuration (--config), it also
sets connection tracking up, as kube-proxy does; the Service frontend beside it has
no capability for that. Without a word of it the machine's settings stay.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := conf.begin(cmd, &logs, nil)
			if err != nil {
				return err
			}
			sayVersion(log, "aggregator")
			http.log = log
			if err := kubeproxy.CheckKernel(); err != nil {
				return err
			}
			reg := newRegistry()
			return runDaemon(cmd.Context(), func(ctx context.Context, g *errgroup.Group) error {
				agg.ports, agg.config = http.listen, conf.access
				daemon, err := agg.start(ctx, g, component(log, "aggregator"), reg)
				if err != nil {
					return err
				}
				http.ready = daemon.ready
				if conf.settings.HostGiven {
					conf.tune(ctx, g, log)
				}
				conf.followHost(ctx, g, cmd, log)
				return daemon.begin(ctx, g, agg.standby, func() error { return http.serve(ctx, g, reg, daemon.healthy) })
			})
		},
	}
	logs.addFlags(cmd.Flags())
	http.addFlags(cmd.Flags())
	agg.addFlags(cmd.Flags())
	conf.options.AddHostFlags(cmd.Flags())
	cmd.Flags().StringArrayVar(&conf.files, "config", nil,
		"file that says who may publish what (see deploy/examples/config.yaml; without one only root and this user may), or kube-proxy's; may be given once for each")
	return cmd
}

// aggregatorFlags configure the aggregator.
type aggregatorFlags struct {
	socket   string
	stateDir string
	// config is the file that says who may publish what; empty means none.
	config  string
	rate    float64
	burst   int
	standby bool
	// readyGrace is how long /readyz waits for the publishers of before.
	readyGrace time.Duration
	// A publisher's lease.
	keepaliveTime, keepaliveTimeout time.Duration
	// register adds further services to the socket; nil for none.
	register func(grpc.ServiceRegistrar)
	// ports takes the HTTP addresses, once the socket is this process's.
	ports func(context.Context) error
}

// defaultStateDir outlives a reboot, as durable fragments must.
const defaultStateDir = "/var/lib/weft"

func (a *aggregatorFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.socket, "socket", client.DefaultSocket, "path of the Unix socket")
	flags.StringVar(&a.stateDir, "state-dir", defaultStateDir, "directory of what must outlive a restart")
	flags.Float64Var(&a.rate, "commit-rate", float64(aggregator.DefaultRate), "commits a second under load; 0 means no limit")
	flags.IntVar(&a.burst, "commit-burst", aggregator.DefaultBurst, "commits without a wait after a quiet time")
	flags.DurationVar(&a.keepaliveTime, "keepalive-time", server.DefaultKeepaliveTime, "ask a publisher for a sign of life after so much silence, at least 1s")
	flags.DurationVar(&a.keepaliveTimeout, "keepalive-timeout", server.DefaultKeepaliveTimeout, "take a publisher for gone that does not answer for so long, at least 1s")
	flags.BoolVar(&a.standby, "standby", false, "wait while another weft has the socket, its ports or the tables, in place of failing, and then take over")
	flags.DurationVar(&a.readyGrace, "ready-grace", aggregator.DefaultReadyGrace,
		"how long after a start /readyz waits for the publishers of before; 0 does not wait")
}

// daemon is a running aggregator.
type daemon struct {
	aggregator *aggregator.Aggregator
	// listening is closed once the socket is this daemon's.
	listening chan struct{}
}

// start opens the kernel and the socket, and adds the aggregator and its server
// to g.
func (a *aggregatorFlags) start(ctx context.Context, g *errgroup.Group, log *slog.Logger, reg prometheus.Registerer) (*daemon, error) {
	if !(a.rate >= 0) || a.burst < 1 { // NaN is no rate either
		return nil, usage("--commit-rate %v --commit-burst %d: want at least 0 and 1", a.rate, a.burst)
	}
	if a.readyGrace < 0 {
		return nil, usage("--ready-grace %v: want at least 0", a.readyGrace)
	}
	if a.keepaliveTime < time.Second || a.keepaliveTimeout < time.Second {
		return nil, usage("--keepalive-time %v --keepalive-timeout %v: want at least 1s each", a.keepaliveTime, a.keepaliveTimeout)
	}
	limit := rate.Limit(a.rate)
	if a.rate == 0 {
		limit = rate.Inf
	}
	control, err := openAccess(ctx, g, a.config, log, reg)
	if err != nil {
		return nil, err
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
		Kernel: conn, Flows: measureFlows(flows, reg), StateDir: a.stateDir, Access: control, Rate: limit, Burst: a.burst, Standby: a.standby,
		// Of the aggregator 0 means the default.
		ReadyGrace: max(a.readyGrace, time.Nanosecond),
		Logger:     log, Registerer: reg,
	})
	if err != nil {
		_, _ = conn.Close(), flows.Close()
		return nil, err
	}
	listen := server.Config{
		Socket: a.socket, Aggregator: agg, Access: control, Logger: log, KeepaliveTime: a.keepaliveTime, KeepaliveTimeout: a.keepaliveTimeout,
		Register: a.register,
	}
	d := &daemon{aggregator: agg, listening: make(chan struct{})}
	run := func(srv *server.Server) error {
		close(d.listening)
		g.Go(func() error { return srv.Serve(ctx) })
		// The tables stay when the socket that owns them closes.
		defer func() { _, _ = conn.Close(), flows.Close() }()
		return agg.Run(ctx)
	}
	if a.standby {
		g.Go(func() error { return standBy(ctx, listen, run, conn, flows) })
		return d, nil
	}
	srv, err := server.Listen(listen)
	if err != nil {
		_, _ = conn.Close(), flows.Close()
		return nil, err
	}
	if err := a.ports(ctx); err != nil {
		_, _, _ = srv.Close(), conn.Close(), flows.Close()
		return nil, err
	}
	g.Go(func() error { return run(srv) })
	return d, nil
}

// healthy answers for the health endpoints: starting up counts as healthy.
func (d *daemon) healthy() error {
	if err := d.aggregator.Healthy(); err != nil {
		return fmt.Errorf("aggregator: %w", err)
	}
	return nil
}

// ready answers for /readyz: not before the publishers of before are back.
func (d *daemon) ready() error {
	if err := d.aggregator.Settled(); err != nil {
		return fmt.Errorf("aggregator: %w", err)
	}
	return nil
}
