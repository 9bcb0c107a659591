package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator"
)

func newRunCmd() *cobra.Command {
	var (
		logs logging
		http endpoints
		agg  aggregatorFlags
		svc  servicesFlags
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Aggregator and Kubernetes Service frontend in one process",
		Long: `Run the aggregator and the Kubernetes Service frontend in one process. The
frontend publishes over the socket, like every other publisher.

Without --kubeconfig and --manifests the frontend uses the pod's own service
account.`,
		Example: `  weft run --kubeconfig /etc/weft/kubeconfig --hostname-override node-a --cluster-cidr 10.244.0.0/16,fd00:10:244::/56
  weft run --manifests deploy/examples/manifests --hostname-override node-a --cluster-cidr 10.244.0.0/16`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logs.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			sayVersion(log, "run")
			reg := newRegistry()
			svc.socket = agg.socket
			frontend, err := svc.frontend(component(log, "services"), reg)
			if err != nil {
				return err
			}
			return runDaemon(cmd.Context(), func(ctx context.Context, g *errgroup.Group) error {
				agg.ports = http.listen
				daemon, err := agg.start(ctx, g, component(log, "aggregator"), reg)
				if err != nil {
					return err
				}
				http.ready = daemon.ready
				return daemon.begin(ctx, g, agg.standby, func() error {
					g.Go(func() error { return frontend.Run(ctx) })
					return http.serve(ctx, g, reg, daemon.healthy)
				})
			})
		},
	}
	logs.addFlags(cmd.Flags())
	http.addFlags(cmd.Flags())
	agg.addFlags(cmd.Flags())
	svc.addFlags(cmd.Flags())
	return cmd
}

// runDaemon starts the parts of a daemon, and waits for them. When one of them
// fails, or ctx ends, all of them stop; so they do after a cleanup, which is no
// failure.
func runDaemon(ctx context.Context, start func(context.Context, *errgroup.Group) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	if err := start(ctx, g); err != nil {
		cancel()
		// The first error is the one to report; the rest is its echo.
		_ = g.Wait()
		return err
	}
	if err := g.Wait(); !errors.Is(err, aggregator.ErrCleanedUp) {
		return err
	}
	return nil
}
