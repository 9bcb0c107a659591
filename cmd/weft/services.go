package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/services/source"
)

func newServicesCmd() *cobra.Command {
	var (
		logs logging
		http endpoints
		svc  servicesFlags
	)
	cmd := &cobra.Command{
		Use:   "services",
		Short: "The Kubernetes Service frontend alone; it needs no capability",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logs.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			sayVersion(log, "services")
			reg := newRegistry()
			frontend, err := svc.frontend(component(log, "services"), reg)
			if err != nil {
				return err
			}
			return runDaemon(cmd.Context(), func(ctx context.Context, g *errgroup.Group) error {
				if err := http.listen(ctx); err != nil {
					return err
				}
				g.Go(func() error { return frontend.Run(ctx) })
				return http.serve(ctx, g, reg, func() error { return nil })
			})
		},
	}
	logs.addFlags(cmd.Flags())
	http.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&svc.socket, "socket", client.DefaultSocket, "path of the aggregator's Unix socket")
	svc.addFlags(cmd.Flags())
	return cmd
}

// servicesFlags configure the Service frontend; the names are kube-proxy's
// where the meaning is the same.
type servicesFlags struct {
	socket            string
	kubeconfig        string
	manifests         string
	hostname          string
	clusterCIDRs      []string
	nodePortAddresses []string
	masqueradeAll     bool
	masqueradeBit     int
	minSyncPeriod     time.Duration
}

func (s *servicesFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "path of a kubeconfig file")
	flags.StringVar(&s.manifests, "manifests", "", "directory of YAML manifests (Service, EndpointSlice, Node) to follow in place of an API server")
	flags.StringVar(&s.hostname, "hostname-override", "", "name of this node in Kubernetes (default: the host's name)")
	flags.StringSliceVar(&s.clusterCIDRs, "cluster-cidr", nil, "addresses of pods, one CIDR per family; flows to a ClusterIP from elsewhere are masqueraded")
	flags.StringSliceVar(&s.nodePortAddresses, "nodeport-addresses", nil, `CIDRs of the local addresses that answer on NodePorts, or "primary": the node's own`)
	flags.BoolVar(&s.masqueradeAll, "masquerade-all", false, "masquerade every flow to a ClusterIP")
	flags.IntVar(&s.masqueradeBit, "masquerade-bit", services.DefaultMasqueradeBit, "bit of the packet mark that asks for masquerading, 0 to 31")
	flags.DurationVar(&s.minSyncPeriod, "min-sync-period", services.DefaultMinSyncPeriod, "least time between two updates; the first after a quiet time goes out at once")
}

func (s *servicesFlags) frontend(log *slog.Logger, reg prometheus.Registerer) (*services.Frontend, error) {
	if s.minSyncPeriod < 0 {
		return nil, usage("--min-sync-period %v: want at least 0, which does not wait", s.minSyncPeriod)
	}
	if s.masqueradeBit < 0 || s.masqueradeBit > 31 {
		return nil, usage("--masquerade-bit %d: want 0 to 31", s.masqueradeBit)
	}
	clusterCIDRs, err := prefixes("cluster-cidr", s.clusterCIDRs)
	if err != nil {
		return nil, err
	}
	nodePortAddresses := s.nodePortAddresses
	if len(nodePortAddresses) == 1 && nodePortAddresses[0] == "primary" {
		nodePortAddresses = nil
	}
	nodePorts, err := prefixes("nodeport-addresses", nodePortAddresses)
	if err != nil {
		return nil, err
	}
	name := s.hostname
	if name == "" {
		if name, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("find the node's name: %w (give --hostname-override)", err)
		}
	}
	name = strings.ToLower(strings.TrimSpace(name))
	src, err := s.source(name, log)
	if err != nil {
		return nil, err
	}
	period := s.minSyncPeriod
	if period == 0 {
		period = -1
	}
	return services.New(services.Config{
		Source: src, NodeName: name, Socket: s.socket,
		Detect: render.Detect{CIDRs: clusterCIDRs}, NodePortAddresses: nodePorts,
		MasqueradeAll: s.masqueradeAll, MasqueradeBit: &s.masqueradeBit, MinSyncPeriod: period,
		Logger: log, Registerer: reg,
	})
}

// prefixes parses a flag that is a list of CIDRs.
func prefixes(flag string, list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return nil, usage("--%s %q: want an address and a prefix length, such as 10.244.0.0/16", flag, s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// source returns what the flags say to follow.
func (s *servicesFlags) source(node string, log *slog.Logger) (source.Source, error) {
	switch {
	case s.manifests != "" && s.kubeconfig != "":
		return nil, usage("--manifests and --kubeconfig: give one of them")
	case s.manifests != "":
		return source.NewManifests(s.manifests, log)
	default:
		// client-go has one logger that belongs to the whole process.
		klog.SetSlogLogger(component(log, "client-go"))
		return source.NewKube(source.KubeConfig{
			Kubeconfig: s.kubeconfig, NodeName: node, UserAgent: "weft/" + version, Logger: log,
		})
	}
}
