package daemon

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/kubelet"
	"github.com/weft-proxy/weft/frontends/services/render"
)

const (
	flagServiceCounters = "service-counters"
	flagServiceActive   = "service-active-connections"
	flagPodsSocket      = "kubelet-pods-socket"
)

type serviceFlags struct {
	counters string
	active   bool
	pods     string
}

func (s *serviceFlags) add(set *pflag.FlagSet) {
	set.StringVar(&s.counters, flagServiceCounters, render.CountServices.String(),
		"what the rules count for the metrics: none, service (new connections by port of a Service, and dropped packets by reason) or endpoint (new connections by endpoint too)")
	set.BoolVar(&s.active, flagServiceActive, false,
		"also export the active connections of each Service, and their bytes where the kernel counts them: lists the kernel's connection tracking table at a scrape, at most every 15s and in a twentieth of the time")
	set.StringVar(&s.pods, flagPodsSocket, kubelet.DefaultSocket,
		"path of the kubelet's Pods API (Kubernetes 1.37): endpoints on this node whose pod the kubelet does not call ready are not used, before the API server says so; the default counts if its directory exists; empty means that the API server alone reports readiness")
}

func (d *daemon) addServices() error {
	cfg := d.settings.Config
	cfg.Source, cfg.NodeName, cfg.Socket, cfg.Local, cfg.Text, cfg.Events = d.cluster.source, d.cluster.nodeName, d.cluster.socket, d.cluster.local, convert.Text, d.cluster.events
	cfg.Logger, cfg.Registerer = d.log.With("component", "services"), d.registry
	var err error
	if cfg.Counters, err = render.ParseCounters(d.services.counters); err != nil {
		return cli.Usagef("--%s %w", flagServiceCounters, err)
	}
	cfg.ActiveConnections, cfg.PodsSocket = d.services.active, podsSocket(d.services.pods, d.set.Changed(flagPodsSocket))
	f, err := services.New(cfg)
	if err != nil {
		return err
	}
	d.frontends, d.proxy = append(d.frontends, f), f.Health()
	return nil
}

// podsSocket returns "" for a default path without a directory.
func podsSocket(path string, given bool) string {
	if _, err := os.Stat(filepath.Dir(path)); err != nil && !given {
		return ""
	}
	return path
}
