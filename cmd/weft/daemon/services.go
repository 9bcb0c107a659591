package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/event"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/source"
)

// servicesFlags are the flags of the Service frontend that kube-proxy does not
// have.
type servicesFlags struct {
	manifests string
	// socket and local exist only if the aggregator is another process.
	socket string
	local  string
}

func (s *servicesFlags) add(set *pflag.FlagSet, verb Verb) {
	set.StringVar(&s.manifests, "manifests", "", "directory of YAML manifests (Service, EndpointSlice, Node) to follow in place of an API server")
	if verb == VerbServices {
		set.StringVar(&s.socket, "socket", client.DefaultSocket, "path of the aggregator's Unix socket")
		set.StringVar(&s.local, "local-state-socket", "", `path of a Unix socket for readers of the local state, such as "weft get services" (default: `+localstate.SocketName+` in the directory of the aggregator's)`)
	}
}

// localState returns the path of the socket for readers of the local state.
func (s *servicesFlags) localState() string {
	if s.local != "" {
		return s.local
	}
	return filepath.Join(filepath.Dir(s.socket), localstate.SocketName)
}

// frontend is the Service frontend and its events.
type frontend struct {
	*services.Frontend
	source  source.Source
	events  *event.Recorder
	version string
}

// newFrontend makes the Service frontend.
func (d *daemon) newFrontend() (*frontend, error) {
	name := d.settings.NodeName
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("find the node's name: %w (give --hostname-override)", err)
		}
		name = strings.ToLower(strings.TrimSpace(name))
	}
	log := d.log.With("component", "services")
	src, api, err := d.services.source(d.settings.Settings, d.version, log)
	if err != nil {
		return nil, err
	}
	f := &frontend{source: src, version: d.version}
	if f.events, err = event.New(event.Config{Client: api, NodeName: name, Logger: log}); err != nil {
		return nil, err
	}
	cfg := d.settings.Config
	cfg.Source, cfg.NodeName, cfg.Socket, cfg.Logger, cfg.Registerer, cfg.Events = src, name, d.services.socket, log, d.registry, f.events
	if d.verb.hasAggregator() {
		cfg.Socket = d.aggregator.socket
	}
	if f.Frontend, err = services.New(cfg); err != nil {
		return nil, err
	}
	return f, nil
}

// source returns the objects to follow, and a client of the API server if they come
// from one.
func (s *servicesFlags) source(set *kubeproxy.Settings, version string, log *slog.Logger) (source.Source, kubernetes.Interface, error) {
	if s.manifests != "" {
		if set.Configuration.ClientConnection.Kubeconfig != "" && set.File == "" {
			return nil, nil, cli.Usagef("--manifests and --kubeconfig: give one of them")
		}
		src, err := source.NewManifests(s.manifests, log)
		return src, nil, err
	}
	// client-go has one logger for the whole process.
	klog.SetSlogLogger(log.With("component", "client-go"))
	cfg := kubeConfig(set, version)
	cfg.Logger = log
	src, err := source.NewKube(cfg)
	if err != nil {
		return nil, nil, err
	}
	return src, src.Client(), nil
}

// kubeConfig translates the settings for the client of the API server.
func kubeConfig(set *kubeproxy.Settings, version string) source.KubeConfig {
	c := set.Configuration.ClientConnection
	return source.KubeConfig{
		Kubeconfig: c.Kubeconfig, Server: set.Server, QPS: c.QPS, Burst: int(c.Burst), ContentType: c.ContentType, AcceptContentTypes: c.AcceptContentTypes,
		UserAgent: "weft/" + version,
	}
}

// run adds the frontend and its source to g.
func (f *frontend) run(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error { return f.events.Run(ctx) })
	f.events.Node(event.Normal, event.Starting, "weft "+f.version)
	g.Go(func() error { return f.source.Run(ctx) })
	g.Go(func() error { return f.Run(ctx) })
}

// startServices starts the daemon without the aggregator: a server of the local state, and
// serve. Services do not depend on the first: its failure is logged.
func (d *daemon) startServices(ctx context.Context, g *errgroup.Group) error {
	g.Go(func() error {
		if err := localstate.Serve(ctx, d.services.localState(), d.frontend.LocalState()); err != nil {
			d.log.Warn("cannot serve the local state to readers", "error", err)
		}
		return nil
	})
	alone := func() error { return nil }
	return d.serve(ctx, g, alone, alone)
}
