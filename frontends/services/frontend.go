package services

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/health"
	"github.com/weft-proxy/weft/frontends/services/kubelet"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/loopback"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/objects"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/services/traffic"
	"github.com/weft-proxy/weft/frontends/source"
)

// Frontend follows Services and publishes their rules.
type Frontend struct {
	cfg       Config
	state     *state
	content   *content
	publisher *publish.Publisher[model.Key, model.Service]
	local     *localstate.Tables
	health    *health.Proxy
	servers   *health.Servers
	loopback  *loopback.Proxy
	metrics   *metrics
	// nil without Config.PodsSocket
	kubelet *kubelet.Follower
	// nil without metrics to read
	traffic *traffic.Collector
	// closed once the source has delivered all existing objects
	synced chan struct{}
	have   [model.NumFamilies]bool
	// by the API server's version
	externalIPsIgnored bool

	mu sync.Mutex
	// result of checkNode
	node error
}

// Status is the progress of a Frontend.
type Status struct {
	// The source has delivered all existing objects.
	Synced bool
	publish.Status
	// arrival of the oldest uncommitted event, or zero
	Pending time.Time
	// rejected or unrenderable Services, as "namespace/name"
	Quarantined []string
}

// New returns a frontend subscribed to its source, which must not run yet. It does no I/O except to detect
// IPv6.
func New(cfg Config) (*Frontend, error) {
	f, err := newFrontend(cfg)
	if err != nil {
		return nil, fmt.Errorf("configure services: %w", err)
	}
	return f, nil
}

func newFrontend(cfg Config) (*Frontend, error) {
	cfg.setDefaults()
	if err := source.Check(cfg.Source, cfg.NodeName); err != nil {
		return nil, err
	}
	have := publish.Families("/proc")
	if err := cfg.check(have); err != nil {
		return nil, err
	}
	modes := cfg.NodePortAddresses.LoopbackModes(cfg.LoopbackNodePorts)
	r, err := render.New(render.Config{
		Families: have, Detect: cfg.Detect, MasqueradeAll: cfg.MasqueradeAll,
		MasqueradeBit: *cfg.MasqueradeBit, NodePortAddresses: cfg.NodePortAddresses, Counters: cfg.Counters,
		Loopback: modes,
	})
	if err != nil {
		return nil, err
	}
	f := &Frontend{cfg: cfg, have: have, synced: make(chan struct{})}
	f.state = &state{backlog: publish.NewBacklog(cfg.Now), refreshed: f.refreshed, model: model.New(model.Config{
		NodeName: cfg.NodeName, NodeAddresses: cfg.NodeAddresses, IgnoreExternalIPs: cfg.AllowExternalIPs != nil && !*cfg.AllowExternalIPs,
		Notify: func(n model.Notice) {
			if n.Reporter {
				cfg.Events.Service(n.Service, warning, n.Reason, n.Message)
			}
		}, Logger: cfg.Logger,
	})}
	f.local = localstate.New(f.state)
	if cfg.PodsSocket != "" {
		f.kubelet = kubelet.New(kubelet.Config{Socket: cfg.PodsSocket, Deliver: f.deliverPods, HeldOut: f.state.heldOut, Logger: cfg.Logger})
	}
	f.content = &content{Renderer: r, state: f.state}
	if f.publisher, err = publish.New(publish.Config[model.Key, model.Service]{
		Socket: cfg.Socket, Local: cfg.Local, Text: cfg.Text, Publisher: Publisher, Fragment: render.Fragment,
		Renderer: f.content, Observer: &observer{Frontend: f, noLocal: newNoLocalEndpoints()}, Compare: model.CompareKeys,
		Portion: portion, Keep: true, Ready: f.synced, Backlog: f.state.backlog, MinInterval: cfg.MinSyncPeriod, MaxRetry: cfg.SyncPeriod, Now: cfg.Now, Logger: cfg.Logger,
	}); err != nil {
		return nil, err
	}
	f.state.outcome, f.state.want = f.publisher.Outcome, f.publisher.Want
	f.loopback = loopback.New(loopback.Config{
		NodeName: cfg.NodeName, Families: f.serves(modes), Listen: cfg.Network.Listen, Dial: cfg.Dial, Events: cfg.Events, Now: cfg.Now, Logger: cfg.Logger,
	})
	if cfg.Counters != render.CountNothing || cfg.ActiveConnections || modes != ([model.NumFamilies]model.LoopbackMode{}) {
		f.traffic = traffic.New(traffic.Config{
			Socket: cfg.Socket, Publisher: Publisher, Counters: cfg.Counters, Flows: cfg.ActiveConnections, Loopback: modes, Ports: r,
			Adopted: func() bool { return f.publisher.Status().Restored }, Now: cfg.Now, Logger: cfg.Logger,
		})
	}
	if f.metrics, err = newMetrics(cfg.Registerer, newProxyMetrics(f.state.backlog, have, f.loopback), f); err != nil {
		return nil, err
	}
	if f.health, err = health.NewProxy(health.ProxyConfig{
		Families: have, Timeout: 2 * cfg.SyncPeriod, Pending: f.state.backlog.Oldest, Published: f.inForce,
		Now: cfg.Now, Registerer: cfg.Registerer,
	}); err != nil {
		return nil, err
	}
	f.servers = health.NewServers(health.ServersConfig{
		NodeName: cfg.NodeName, Families: have, NodePortAddresses: cfg.NodePortAddresses,
		Healthy: f.health.Healthy, Network: cfg.Network, Events: cfg.Events, Logger: cfg.Logger,
	})
	cfg.warn(have)
	subscription := source.Subscription{User: Publisher, Kinds: objects.Kinds(cfg.NodeName, f.state.model, cfg.PodsSocket != ""), Deliver: f.deliver, Synced: f.setSynced}
	if cfg.AllowExternalIPs == nil {
		subscription.Version = f.setVersion
	}
	f.metrics.proxy.allowExternalIPs(cfg.AllowExternalIPs == nil || *cfg.AllowExternalIPs)
	return f, cfg.Source.Subscribe(subscription)
}

// Run works until ctx ends, and leaves all rules in place. It does not run the source.
func (f *Frontend) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.publisher.Run(ctx) })
	g.Go(func() error { return f.servers.Run(ctx) })
	g.Go(func() error { return f.loopback.Run(ctx) })
	if f.kubelet != nil {
		g.Go(func() error { f.kubelet.Run(ctx); return nil })
	}
	if f.traffic != nil {
		defer f.traffic.Close()
	}
	return g.Wait()
}

// ReleasePorts permanently closes the ports of Services for another proxy.
func (f *Frontend) ReleasePorts() {
	f.servers.Release()
	f.loopback.Release()
}

func (f *Frontend) serves(modes [model.NumFamilies]model.LoopbackMode) (out [model.NumFamilies]bool) {
	for fam, have := range f.have {
		out[fam] = have && modes[fam] == model.LoopbackServed
	}
	return out
}

func (f *Frontend) Status() Status {
	out := Status{Synced: f.isSynced(), Status: f.publisher.Status(), Pending: f.state.backlog.Oldest()}
	for _, key := range f.publisher.Refused() {
		out.Quarantined = append(out.Quarantined, key.String())
	}
	return out
}

// Name returns the frontend's name in conditions.
func (f *Frontend) Name() string { return Publisher }

// Ready returns nil once this process has committed its rules, else the reason.
func (f *Frontend) Ready() error {
	status := f.publisher.Status()
	switch {
	case status.Published:
		return nil
	case status.Err != nil:
		return fmt.Errorf("services: not published: %w", status.Err)
	case !f.isSynced():
		return errors.New("services: not published: the Services of the cluster are not known yet")
	default:
		return errors.New("services: not published yet")
	}
}

// Degraded returns why the rules in force may not be the wanted ones, or nil.
func (f *Frontend) Degraded() error {
	status := f.Status()
	if err := status.Status.Degraded(); err != nil {
		return fmt.Errorf("services: %w", err)
	}
	if wait := f.cfg.Now().Sub(status.Pending); f.isSynced() && !status.Pending.IsZero() && wait > 2*f.cfg.SyncPeriod {
		return fmt.Errorf("services: a change has been waiting for its commit for %v", wait.Round(time.Second))
	}
	if n := len(status.Quarantined); n > 0 {
		return fmt.Errorf("services: %d refused: %s", n, strings.Join(status.Quarantined[:min(n, maxNamed)], ", "))
	}
	return nil
}

const maxNamed = 5

// Node returns why the Node object does not fit this node or the configuration, or nil.
func (f *Frontend) Node() error {
	f.mu.Lock()
	err := f.node
	f.mu.Unlock()
	if err == nil && f.isSynced() && !f.state.located() {
		err = fmt.Errorf("no Node and no endpoint has the name of this node, %q: Services with the traffic policy Local have no endpoints here: compare it with `kubectl get nodes`, and give the right one (--hostname-override)", f.cfg.NodeName)
	}
	return err
}

// Kubelet returns a check of the connection to the kubelet, or nil without Config.PodsSocket.
func (f *Frontend) Kubelet() func() error {
	if f.kubelet == nil {
		return nil
	}
	return f.kubelet.Err
}

// inForce returns nil once rules of this or an earlier process are in force.
func (f *Frontend) inForce() error {
	if status := f.publisher.Status(); status.Restored && !errors.Is(status.Err, client.ErrPermission) {
		return nil
	}
	return f.Ready()
}

// Health returns the handlers of /healthz and /livez.
func (f *Frontend) Health() *health.Proxy { return f.health }

// Model returns the local model as of the last Refresh.
func (f *Frontend) Model() model.Snapshot { return f.state.State().Snapshot }

// Tables returns the tables of the local state.
func (f *Frontend) Tables() []client.Table { return f.local.Tables() }

func (f *Frontend) deliver(events []source.Event) {
	counts, dirty, eligible := f.state.apply(events)
	for resource, n := range counts {
		f.metrics.Events.WithLabelValues(kindOf(resource)).Add(float64(n))
	}
	f.metrics.proxy.events(counts[serviceEvents], counts[sliceEvents], dirty, f.cfg.Now())
	// During startup a missing Node does not matter.
	if f.isSynced() {
		f.health.SetEligible(eligible)
	}
	if dirty {
		f.publisher.Wake()
	}
}

func (f *Frontend) deliverPods(change func(*model.Model)) {
	f.metrics.Events.WithLabelValues(podEvents).Inc()
	if f.state.change(change) {
		f.publisher.Wake()
	}
}

func (f *Frontend) setSynced() {
	f.state.backlog.Restart()
	_, _, eligible := f.state.apply(nil)
	f.health.SetEligible(eligible)
	if f.externalIPsIgnored {
		if services, _ := f.state.ignoreExternalIPs(true); services > 0 {
			f.logExternalIPs(services)
		}
	}
	close(f.synced)
}

func (f *Frontend) isSynced() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// refreshed is called under the model's lock.
func (f *Frontend) refreshed(c *model.Changes, revision uint64) {
	f.local.Changed(c)
	f.noteNode(c.Node)
	f.metrics.changes.Add(float64(len(c.Services)))
	f.metrics.model.Set(float64(revision))
}
