package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/explain"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/frontends/policy"
	policytables "github.com/weft-proxy/weft/frontends/policy/render"
	"github.com/weft-proxy/weft/frontends/services"
	servicetables "github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/nft/kernel"
)

const defaultStateDir = "/var/lib/weft"

var ownTables = map[string]string{servicetables.Table: services.Publisher, policytables.Table: policy.Publisher}

type aggregatorFlags struct {
	rate   float64
	writer aggregator.Config
	server server.Config
}

func (a *aggregatorFlags) add(set, state, expert *pflag.FlagSet) {
	set.StringVar(&a.server.Socket, "socket", client.DefaultSocket, "path of the Unix socket")
	state.StringVar(&a.writer.StateDir, "state-dir", defaultStateDir, "directory of the state that survives a restart")
	expert.Float64Var(&a.rate, "commit-rate", float64(aggregator.DefaultRate), "commits a second under load; 0 means no limit")
	expert.IntVar(&a.writer.Burst, "commit-burst", aggregator.DefaultBurst, "commits without a wait after an idle time")
	state.IntVar(&a.writer.HistoryEntries, "history-entries", history.DefaultMaxEntries, "commits that the history in the state directory keeps at most; 0 records none")
	state.Int64Var(&a.writer.HistoryBytes, "history-bytes", history.DefaultMaxBytes, "bytes that the history keeps at most; it takes up to about twice as many in the database")
	expert.DurationVar(&a.server.KeepaliveTime, "keepalive-time", server.DefaultKeepaliveTime, "how long a publisher may be silent before it is pinged, at least 1s")
	expert.DurationVar(&a.server.KeepaliveTimeout, "keepalive-timeout", server.DefaultKeepaliveTimeout, "how long a publisher may leave a ping unanswered before its connection is closed, at least 1s")
	set.BoolVar(&a.writer.Standby, "standby", false, "while another weft has the socket, its ports or the tables, wait instead of failing, and then take over")
	expert.DurationVar(&a.writer.ReadyGrace, "ready-grace", aggregator.DefaultReadyGrace,
		"how long after a start /readyz waits for the publishers of before the restart; 0 does not wait")
}

func (a *aggregatorFlags) check() error {
	w, s := &a.writer, &a.server
	switch {
	case !(a.rate >= 0) || w.Burst < 1: // NaN too
		return cli.Usagef("--commit-rate %v --commit-burst %d: want at least 0 and 1", a.rate, w.Burst)
	case w.HistoryEntries < 0 || w.HistoryBytes < 0:
		return cli.Usagef("--history-entries %d --history-bytes %d: want at least 0", w.HistoryEntries, w.HistoryBytes)
	case w.ReadyGrace < 0:
		return cli.Usagef("--ready-grace %v: want at least 0", w.ReadyGrace)
	case s.KeepaliveTime < time.Second || s.KeepaliveTimeout < time.Second:
		return cli.Usagef("--keepalive-time %v --keepalive-timeout %v: want at least 1s each", s.KeepaliveTime, s.KeepaliveTimeout)
	}
	return nil
}

func (a *aggregatorFlags) limit() rate.Limit {
	if a.rate == 0 {
		return rate.Inf
	}
	return rate.Limit(a.rate)
}

// openFlows opens two connections, so that a publisher's listing of flows does not delay a removal
// after a commit.
func openFlows() (flows, flowTable *conntrack.Conn, err error) {
	if flows, err = conntrack.Open(); err != nil {
		return nil, nil, err
	}
	if flowTable, err = conntrack.Open(); err != nil {
		_ = flows.Close()
		return nil, nil, err
	}
	return flows, flowTable, nil
}

// follow applies the file after a change or SIGHUP.
func follow(ctx context.Context, g *errgroup.Group, control *access.Control) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	g.Go(func() error {
		defer signal.Stop(hangup)
		control.Follow(ctx, hangup)
		return nil
	})
}

// The lease passes the kernel's socket to and from a holder.
func openKernel(socket string, log *slog.Logger) (*kernel.Conn, *server.Lease, error) {
	lease := server.NewLease(server.HoldSocket(socket), log)
	conn, err := kernel.Open(kernel.Config{Inherit: lease.Inherit})
	if err == nil && !conn.Owner() {
		log.Warn("this kernel cannot protect tables from other processes (that needs Linux 6.9): foreign changes are repaired after they happen")
	}
	return conn, lease, err
}

// startAggregator starts the parts, with --standby only when no other weft has the socket.
func (d *daemon) startAggregator(ctx context.Context, g *errgroup.Group) error {
	a, accessFile, log := &d.aggregator, d.settings.accessFile, d.log.With("component", "aggregator")
	if err := a.check(); err != nil {
		return err
	}
	control, err := access.Open(access.Options{File: accessFile, Logger: log, Registerer: d.registry})
	if err != nil {
		return err
	}
	// SIGHUP without a file ends the process, its default.
	if accessFile != "" {
		follow(ctx, g, control)
	}
	conn, lease, err := openKernel(a.server.Socket, log)
	if err != nil {
		return err
	}
	flows, flowTable, err := openFlows()
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	// The tables stay in the kernel when their owner's socket closes.
	closeAll := func() { _, _, _ = conn.Close(), flows.Close(), flowTable.Close() }
	cfg := a.writer
	cfg.Version, cfg.Kernel, cfg.Flows, cfg.Access = d.version, conn, measureFlows(flows, d.registry), control
	cfg.ReadAll, cfg.Findings, cfg.Needs, cfg.OwnTables = explain.ReadKernel, true, needs, ownTables
	// In aggregator.Config 0 means the default.
	cfg.Rate, cfg.ReadyGrace = a.limit(), max(cfg.ReadyGrace, time.Nanosecond)
	cfg.Logger, cfg.Registerer = log, d.registry
	agg, err := aggregator.New(cfg)
	if d.tables = agg; err == nil {
		err = errors.Join(d.registry.Register(conntrackSize("/")), d.newMonitor(&aggregatorHealth{agg, func() error { return d.socket.Rival() }, control.Current, "/"}))
	}
	if err != nil {
		closeAll()
		return err
	}
	listen := a.server
	listen.Local, listen.Aggregator, listen.Flows = &d.local, agg, measureTable(flowTable, d.registry)
	listen.Access, listen.Logger = control, log
	run := func(srv *server.Server, err error) error {
		if err != nil {
			closeAll()
			return err
		}
		d.socket = srv
		// Before it has the socket, a frontend would publish to another weft, which also has the HTTP
		// ports.
		if err := d.serve(ctx, g, agg.Healthy); err != nil {
			closeAll()
			return errors.Join(err, srv.Close())
		}
		g.Go(func() error { return srv.Serve(ctx) })
		// The lease ends after the last use of the socket.
		leased, endLease := context.WithCancel(context.WithoutCancel(ctx))
		g.Go(func() error {
			lease.Keep(leased, conn)
			return nil
		})
		g.Go(func() error {
			defer endLease()
			defer closeAll()
			defer control.Close()
			return agg.Run(ctx)
		})
		return nil
	}
	if !cfg.Standby {
		return run(server.Listen(listen))
	}
	g.Go(func() error {
		err := run(server.Await(ctx, listen))
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	return nil
}
