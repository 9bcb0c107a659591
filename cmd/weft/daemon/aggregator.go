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
	socket                          string
	stateDir                        string
	rate                            float64
	burst                           int
	standby                         bool
	readyGrace                      time.Duration
	keepaliveTime, keepaliveTimeout time.Duration
	historyEntries                  int
	historyBytes                    int64
}

func (a *aggregatorFlags) add(set, state, expert *pflag.FlagSet) {
	set.StringVar(&a.socket, "socket", client.DefaultSocket, "path of the Unix socket")
	state.StringVar(&a.stateDir, "state-dir", defaultStateDir, "directory of the state that survives a restart")
	expert.Float64Var(&a.rate, "commit-rate", float64(aggregator.DefaultRate), "commits a second under load; 0 means no limit")
	expert.IntVar(&a.burst, "commit-burst", aggregator.DefaultBurst, "commits without a wait after an idle time")
	state.IntVar(&a.historyEntries, "history-entries", history.DefaultMaxEntries, "commits that the history in the state directory keeps at most; 0 records none")
	state.Int64Var(&a.historyBytes, "history-bytes", history.DefaultMaxBytes, "bytes that the history keeps at most; it takes up to about twice as many in the database")
	expert.DurationVar(&a.keepaliveTime, "keepalive-time", server.DefaultKeepaliveTime, "how long a publisher may be silent before it is pinged, at least 1s")
	expert.DurationVar(&a.keepaliveTimeout, "keepalive-timeout", server.DefaultKeepaliveTimeout, "how long a publisher may leave a ping unanswered before its connection is closed, at least 1s")
	set.BoolVar(&a.standby, "standby", false, "while another weft has the socket, its ports or the tables, wait instead of failing, and then take over")
	expert.DurationVar(&a.readyGrace, "ready-grace", aggregator.DefaultReadyGrace,
		"how long after a start /readyz waits for the publishers of before the restart; 0 does not wait")
}

func (a *aggregatorFlags) check() error {
	if !(a.rate >= 0) || a.burst < 1 { // NaN too
		return cli.Usagef("--commit-rate %v --commit-burst %d: want at least 0 and 1", a.rate, a.burst)
	}
	if a.historyEntries < 0 || a.historyBytes < 0 {
		return cli.Usagef("--history-entries %d --history-bytes %d: want at least 0", a.historyEntries, a.historyBytes)
	}
	if a.readyGrace < 0 {
		return cli.Usagef("--ready-grace %v: want at least 0", a.readyGrace)
	}
	if a.keepaliveTime < time.Second || a.keepaliveTimeout < time.Second {
		return cli.Usagef("--keepalive-time %v --keepalive-timeout %v: want at least 1s each", a.keepaliveTime, a.keepaliveTimeout)
	}
	return nil
}

func (a *aggregatorFlags) limit() rate.Limit {
	if a.rate == 0 {
		return rate.Inf
	}
	return rate.Limit(a.rate)
}

// openFlows opens two connections, so that a listing of publishers does not delay a removal after a
// commit.
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
	conn, lease, err := openKernel(a.socket, log)
	if err != nil {
		return err
	}
	flows, flowTable, err := openFlows()
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	// The tables stay in the kernel when their owner's socket closes.
	closeAll := func() { _, _, _ = conn.Close(), flows.Close(), flowTable.Close() }
	agg, err := aggregator.New(aggregator.Config{
		Version: d.version,
		Kernel:  conn, ReadAll: explain.ReadKernel, Findings: true, Needs: needs, Flows: measureFlows(flows, d.registry), StateDir: a.stateDir, HistoryEntries: a.historyEntries, HistoryBytes: a.historyBytes, Access: control,
		OwnTables: ownTables,
		Rate:      a.limit(), Burst: a.burst, Standby: a.standby,
		// The aggregator's default is 0.
		ReadyGrace: max(a.readyGrace, time.Nanosecond),
		Logger:     log, Registerer: d.registry,
	})
	if d.tables = agg; err == nil {
		err = errors.Join(d.registry.Register(conntrackSize("/")), d.newMonitor(&aggregatorHealth{agg, func() error { return d.socket.Rival() }, control.Current, "/"}))
	}
	if err != nil {
		closeAll()
		return err
	}
	listen := server.Config{
		Socket: a.socket, Local: &d.local, Aggregator: agg, Flows: measureTable(flowTable, d.registry), Access: control, Logger: log, KeepaliveTime: a.keepaliveTime, KeepaliveTimeout: a.keepaliveTimeout,
	}
	run := func(srv *server.Server) error {
		d.socket = srv
		// Not earlier: a frontend would publish to another weft, which also has the HTTP ports.
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
	if a.standby {
		g.Go(func() error {
			srv, err := server.Await(ctx, listen)
			if err == nil {
				return run(srv)
			}
			closeAll()
			if ctx.Err() != nil {
				return nil
			}
			return err
		})
		return nil
	}
	srv, err := server.Listen(listen)
	if err != nil {
		closeAll()
		return err
	}
	return run(srv)
}
