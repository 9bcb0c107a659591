package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/event"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/source"
)

func newServicesCmd() *cobra.Command {
	var (
		logs logging
		http endpoints
		svc  servicesFlags
		// local is where the local state is offered.
		local string
	)
	conf := newConfiguration()
	conf.proxyOnly = true
	cmd := &cobra.Command{
		Use:   "services",
		Short: "The Kubernetes Service frontend alone; it needs no capability",
		Long: `Run the Kubernetes Service frontend alone. It takes the flags and the
configuration file of kube-proxy; what these say of connection tracking is for
weft aggregator, which has the capability.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := conf.begin(cmd, &logs, &http)
			if err != nil {
				return err
			}
			if done, err := conf.early(cmd.Context(), log); done || err != nil {
				return err
			}
			sayVersion(log, "services")
			http.log = log
			if conf.settings.HostGiven && conf.settings.File == "" {
				log.Warn("connection tracking is set up by weft aggregator: give the --conntrack flags there")
			}
			reg := newRegistry()
			frontend, err := svc.frontend(conf.settings, component(log, "services"), reg)
			if err != nil {
				return err
			}
			return runDaemon(cmd.Context(), func(ctx context.Context, g *errgroup.Group) error {
				if err := http.listen(ctx); err != nil {
					return err
				}
				if conf.settings.OOMGiven {
					conf.tuneProcess(ctx, log)
				}
				conf.follow(ctx, g, cmd, log)
				svc.run(ctx, g, frontend)
				if local == "" {
					local = filepath.Join(filepath.Dir(svc.socket), localstate.SocketName)
				}
				g.Go(func() error {
					// Readers can do without: Services come first.
					if err := localstate.Serve(ctx, local, frontend.LocalState()); err != nil {
						log.Warn("the local state is not offered to readers", "error", err)
					}
					return nil
				})
				http.proxy, http.events = frontend.Health(), svc.events
				return http.serve(ctx, g, reg, func() error { return nil })
			})
		},
	}
	logs.addFlags(cmd.Flags())
	http.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&svc.socket, "socket", client.DefaultSocket, "path of the aggregator's Unix socket")
	cmd.Flags().StringVar(&local, "local-state-socket", "", `path of a Unix socket for readers of the local state, as "weft get services" (default: `+localstate.SocketName+` beside the aggregator's)`)
	cmd.Flags().StringArrayVar(&conf.files, "config", nil, "file with a KubeProxyConfiguration; beside it most flags do not count")
	conf.options.AddFlags(cmd.Flags())
	svc.addFlags(cmd.Flags())
	return cmd
}

// servicesFlags are the flags of the Service frontend that kube-proxy does not
// have.
type servicesFlags struct {
	socket    string
	manifests string
	// events takes what people should see of this node and its Services.
	events *event.Recorder
}

func (s *servicesFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.manifests, "manifests", "", "directory of YAML manifests (Service, EndpointSlice, Node) to follow in place of an API server")
}

// frontend makes the Service frontend.
func (s *servicesFlags) frontend(set *kubeproxy.Settings, log *slog.Logger, reg prometheus.Registerer) (*services.Frontend, error) {
	name := set.NodeName
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("find the node's name: %w (give --hostname-override)", err)
		}
		name = strings.ToLower(strings.TrimSpace(name))
	}
	src, err := s.source(set, name, log)
	if err != nil {
		return nil, err
	}
	if s.events, err = newEvents(src, name, log); err != nil {
		return nil, err
	}
	cfg := servicesConfig(set)
	cfg.Source, cfg.NodeName, cfg.Socket, cfg.Logger, cfg.Registerer = src, name, s.socket, log, reg
	cfg.Events = s.events
	return services.New(cfg)
}

// servicesConfig says what the settings are for the Service frontend.
func servicesConfig(set *kubeproxy.Settings) services.Config {
	bit, period := int(*set.Configuration.NFTables.MasqueradeBit), set.MinSyncPeriod
	if period == 0 {
		period = -1 // no wait; 0 is the default
	}
	return services.Config{
		Detect: set.Detect, NodeAddresses: set.NodeAddresses, IgnoreExternalIPs: set.IgnoreExternalIPs, NodePortAddresses: set.NodePortAddresses,
		MasqueradeAll: set.Configuration.NFTables.MasqueradeAll, MasqueradeBit: &bit, SyncPeriod: set.SyncPeriod, MinSyncPeriod: period,
	}
}

// kubeConfig says what the settings are for the client of the API server.
func kubeConfig(set *kubeproxy.Settings) source.KubeConfig {
	c := set.Configuration.ClientConnection
	return source.KubeConfig{
		Kubeconfig: c.Kubeconfig, Server: set.Server, QPS: c.QPS, Burst: int(c.Burst), ContentType: c.ContentType, AcceptContentTypes: c.AcceptContentTypes,
		UserAgent: "weft/" + version,
	}
}

// run adds the frontend to g, and says on the Node that it starts.
func (s *servicesFlags) run(ctx context.Context, g *errgroup.Group, frontend *services.Frontend) {
	g.Go(func() error { return s.events.Run(ctx) })
	s.events.Node(event.Normal, event.Starting, "weft "+version)
	g.Go(func() error { return frontend.Run(ctx) })
}

// source returns what the flags say to follow.
func (s *servicesFlags) source(set *kubeproxy.Settings, node string, log *slog.Logger) (source.Source, error) {
	switch {
	case s.manifests != "" && set.Configuration.ClientConnection.Kubeconfig != "" && set.File == "":
		return nil, usage("--manifests and --kubeconfig: give one of them")
	case s.manifests != "":
		return source.NewManifests(s.manifests, log)
	default:
		// client-go has one logger that belongs to the whole process.
		klog.SetSlogLogger(component(log, "client-go"))
		cfg := kubeConfig(set)
		cfg.NodeName, cfg.Logger = node, log
		return source.NewKube(cfg)
	}
}
