package chaos

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
)

// daemonConfig is what an aggregator process is started with.
type daemonConfig struct {
	Socket, StateDir string
	// NoOwner leaves the tables open to other processes, as before Linux 6.9.
	NoOwner bool
	// Rate is in commits a second; 0 means no limit.
	Rate  float64
	Grace time.Duration
}

// runDaemon is the main function of an aggregator process: what "weft
// aggregator" does, without its flags. It ends with its standard input, and
// gracefully on SIGTERM.
func runDaemon(cfg daemonConfig, in io.Reader, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(1)
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	conn, err := kernel.Open(kernel.Config{NoOwner: cfg.NoOwner})
	if err != nil {
		return err
	}
	defer conn.Close()
	if cfg.NoOwner == conn.Owner() {
		return fmt.Errorf("ownership is %t: this needs Linux 6.9", conn.Owner())
	}
	flows, err := conntrack.Open()
	if err != nil {
		return err
	}
	defer flows.Close()
	limit := rate.Limit(cfg.Rate)
	if cfg.Rate == 0 {
		limit = rate.Inf
	}
	agg, err := aggregator.New(aggregator.Config{
		Kernel: conn, Flows: flows, StateDir: cfg.StateDir, Rate: limit, SessionGrace: cfg.Grace, Logger: log,
	})
	if err != nil {
		return err
	}
	srv, err := server.Listen(server.Config{Socket: cfg.Socket, Aggregator: agg, Logger: log})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return agg.Run(ctx) })
	g.Go(func() error { return srv.Serve(ctx) })
	g.Go(func() error {
		select {
		case <-agg.Ready():
			return (&lines{w: out}).write(reply{Kind: replyReady})
		case <-ctx.Done():
			return nil
		}
	})
	return g.Wait()
}
