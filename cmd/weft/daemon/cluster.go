package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/frontends/event"
	"github.com/weft-proxy/weft/frontends/policy"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/source"
)

// frontend is *services.Frontend or *policy.Frontend.
type frontend interface {
	Run(ctx context.Context) error
	Ready() error
	Name() string
	// Degraded returns a problem although the rules are committed.
	Degraded() error
	Tables() []client.Table
}

type frontendFlags struct {
	manifests string
	// set only if the aggregator is another process
	socket string
}

func (f *frontendFlags) add(set *pflag.FlagSet, verb Verb) {
	kinds := "Service, EndpointSlice, Node"
	switch verb {
	case VerbPolicy:
		kinds = "NetworkPolicy, Pod, Namespace, Node"
	case VerbRun:
		kinds += "; with --network-policy also NetworkPolicy, Pod, Namespace"
	}
	set.StringVar(&f.manifests, "manifests", "", "directory of YAML manifests ("+kinds+") to follow in place of an API server")
	if !verb.hasAggregator() {
		set.StringVar(&f.socket, "socket", client.DefaultSocket, "path of the aggregator's Unix socket")
		set.String(flagLocalState, "", "")
		// The only error is an unknown flag.
		_ = set.MarkDeprecated(flagLocalState, "it has no effect: readers of the local state use the aggregator's socket")
	}
}

// flagLocalState is in units and manifests of earlier versions.
const flagLocalState = "local-state-socket"

type cluster struct {
	nodeName string
	version  string
	// The aggregator's socket, or its connection within the process.
	socket string
	local  grpc.ClientConnInterface
	source source.Source
	// nil if the objects come from manifests
	api    kubernetes.Interface
	events *event.Recorder
}

// newFrontends makes the frontends in the order in which they subscribe to the source.
func (d *daemon) newFrontends() error {
	var err error
	if d.cluster, err = d.newCluster(); err != nil {
		return err
	}
	if d.verb.hasServices() {
		if err := d.addServices(); err != nil {
			return err
		}
	}
	if d.hasPolicy() {
		return d.addPolicy()
	}
	return nil
}

func (d *daemon) newCluster() (*cluster, error) {
	c := &cluster{nodeName: d.settings.NodeName, version: d.version, socket: d.frontend.socket}
	if d.verb.hasAggregator() {
		c.socket, c.local = d.aggregator.server.Socket, &d.local
	}
	if c.nodeName == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("find the node's name: %w (give --hostname-override)", err)
		}
		c.nodeName = strings.ToLower(strings.TrimSpace(name))
	}
	log := d.log.With("component", d.publishers()[0])
	err := d.openSource(c, log)
	if err == nil {
		c.events, err = event.New(event.Config{Client: c.api, NodeName: c.nodeName, Logger: log})
	}
	return c, err
}

func (d *daemon) openSource(c *cluster, log *slog.Logger) (err error) {
	if d.frontend.manifests != "" {
		if d.settings.Configuration.ClientConnection.Kubeconfig != "" && d.settings.File == "" {
			return cli.Usagef("--manifests and --kubeconfig: give one of them")
		}
		c.source, err = source.NewManifests(d.frontend.manifests, log)
		return err
	}
	// client-go has one logger for the whole process.
	klog.SetSlogLogger(log.With("component", "client-go"))
	cfg := kubeConfig(d.settings.Settings, d.version)
	cfg.Logger = log
	cfg.Restarted = func(ctx context.Context) bool { return restarted(ctx, c.socket, d.publishers()) }
	kube, err := source.NewKube(cfg)
	if err == nil {
		c.source, c.api = kube, kube.Client()
	}
	return err
}

func kubeConfig(set *kubeproxy.Settings, version string) source.KubeConfig {
	c := set.Configuration.ClientConnection
	return source.KubeConfig{
		Kubeconfig: c.Kubeconfig, Server: set.Server, QPS: c.QPS, Burst: int(c.Burst), ContentType: c.ContentType, AcceptContentTypes: c.AcceptContentTypes,
		UserAgent: "weft/" + version,
	}
}

func (c *cluster) run(ctx context.Context, g *errgroup.Group, services bool) {
	g.Go(func() error { return c.events.Run(ctx) })
	// Only the Service frontend's process reports its start: a node has one such event.
	if services {
		c.events.Node(event.Normal, event.Starting, "weft "+c.version)
	}
	g.Go(func() error { return c.source.Run(ctx) })
}

// servedTables returns the tables by the publisher that serves them.
func (d *daemon) servedTables() map[string][]client.Table {
	out := make(map[string][]client.Table)
	if d.verb.hasAggregator() {
		out[get.AggregatorPublisher] = []client.Table{d.monitor.Table()}
	}
	for i, name := range d.publishers() {
		out[name] = d.frontends[i].Tables()
		if !d.verb.hasAggregator() {
			out[name] = append(out[name], d.monitor.Table())
		}
	}
	return out
}

func (d *daemon) serveTables(ctx context.Context, g *errgroup.Group, socket string) {
	for publisher, tables := range d.servedTables() {
		g.Go(func() error {
			return client.ServeTables(ctx, client.Config{Socket: socket, Publisher: publisher, Logger: d.log}, tables...)
		})
	}
}

func (d *daemon) startFrontends(ctx context.Context, g *errgroup.Group) error {
	if err := d.newMonitor(nil); err != nil {
		return err
	}
	return d.serve(ctx, g, func() error { return nil })
}

// healthy returns the frontends' errors that the Service frontend's health does not include.
func (d *daemon) healthy() error {
	return joined(d, func(f interface{ Healthy() error }) error { return f.Healthy() })
}

func joined[T any](d *daemon, ask func(T) error) (err error) {
	for _, f := range d.frontends {
		if of, ok := f.(T); ok {
			err = errors.Join(err, ask(of))
		}
	}
	return err
}

// restartedWait is short, because an aggregator without rules answers as soon as it listens.
const restartedWait = time.Second

func (d *daemon) publishers() (names []string) {
	if d.verb.hasServices() {
		names = append(names, services.Publisher)
	}
	if d.hasPolicy() {
		names = append(names, policy.Publisher)
	}
	return names
}

// restarted reports whether the aggregator has rules of this process from before a restart, false
// without an answer.
func restarted(ctx context.Context, socket string, publishers []string) bool {
	ctx, cancel := context.WithTimeout(ctx, restartedWait)
	defer cancel()
	config := client.Config{Socket: socket, DialTimeout: restartedWait}
	all, err := cli.Ask(ctx, config, func(c *client.Client) (*weftv1.ListFragmentsResponse, error) { return c.List(ctx) })
	return err == nil && slices.ContainsFunc(all.GetFragments(), func(f *weftv1.FragmentStatus) bool {
		return slices.Contains(publishers, f.GetFragment().GetPublisher()) && f.GetRules() > 0
	})
}
