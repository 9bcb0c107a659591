package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
)

func newRunCmd() *cobra.Command {
	var (
		logs logging
		http endpoints
		agg  aggregatorFlags
		svc  servicesFlags
	)
	conf := newConfiguration()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Aggregator and Kubernetes Service frontend in one process",
		Long: `Run the aggregator and the Kubernetes Service frontend in one process. The
frontend publishes over the socket, like every other publisher.

It takes the command line of kube-proxy, and with --config its configuration file
(kind KubeProxyConfiguration), unchanged: what cannot apply is named in a warning.
Beside such a file kube-proxy's flags do not count, but for --hostname-override,
--master and those of the log. --config also takes the file that says who may
publish what (kind Configuration); both may be given. When kube-proxy's file
changes, weft ends without a failure, to be started again with it; its rules stay.

As kube-proxy does, it raises the limit of tracked flows and sets timeouts of
connection tracking; --conntrack-max-per-core=0 and timeouts of 0 leave them.

Without --kubeconfig and --manifests the frontend uses the pod's own service
account.

Linux before 5.13 is refused, unless the environment has
WEFT_SKIP_KERNEL_VERSION_CHECK=1 (or kube-proxy's variable
KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK=1).`,
		Example: `  weft run --kubeconfig /etc/weft/kubeconfig --hostname-override node-a --cluster-cidr 10.244.0.0/16,fd00:10:244::/56
  weft run --manifests deploy/examples/manifests --hostname-override node-a --cluster-cidr 10.244.0.0/16`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := conf.begin(cmd, &logs, &http)
			if err != nil {
				return err
			}
			if done, err := conf.early(cmd.Context(), log); done || err != nil {
				return err
			}
			sayVersion(log, "run")
			http.log = log
			if err := kubeproxy.CheckKernel(); err != nil {
				return err
			}
			reg := newRegistry()
			svc.socket = agg.socket
			frontend, err := svc.frontend(conf.settings, component(log, "services"), reg)
			if err != nil {
				return err
			}
			return runDaemon(cmd.Context(), func(ctx context.Context, g *errgroup.Group) error {
				agg.ports, agg.config, agg.register = http.listen, conf.access, frontend.LocalState().Register
				daemon, err := agg.start(ctx, g, component(log, "aggregator"), reg)
				if err != nil {
					return err
				}
				http.ready, http.proxy, http.events = daemon.ready, frontend.Health(), svc.events
				conf.tune(ctx, g, log)
				conf.follow(ctx, g, cmd, log)
				return daemon.begin(ctx, g, agg.standby, func() error {
					svc.run(ctx, g, frontend)
					return http.serve(ctx, g, reg, daemon.healthy)
				})
			})
		},
	}
	logs.addFlags(cmd.Flags())
	http.addFlags(cmd.Flags())
	agg.addFlags(cmd.Flags())
	svc.addFlags(cmd.Flags())
	conf.options.AddFlags(cmd.Flags())
	cmd.Flags().StringArrayVar(&conf.files, "config", nil,
		"file with kube-proxy's KubeProxyConfiguration, or one that says who may publish what (see deploy/examples); may be given once for each")
	return cmd
}

// runDaemon starts the parts of a daemon, and what looks after it between bursts, and
// waits for them. When one of them fails, or ctx ends, all of them stop; so they do
// after a cleanup and when the configuration has changed, which is no failure.
func runDaemon(ctx context.Context, start func(context.Context, *errgroup.Group) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return newCalm().run(ctx) })
	if err := start(ctx, g); err != nil {
		cancel()
		// The first error is the one to report; the rest is its echo.
		_ = g.Wait()
		return err
	}
	err := g.Wait()
	if errors.Is(err, aggregator.ErrCleanedUp) || errors.Is(err, kubeproxy.ErrChanged) {
		return nil
	}
	return err
}
