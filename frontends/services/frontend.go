package services

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/health"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/objects"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/source"
)

// Frontend follows Services and publishes the rules for them.
type Frontend struct {
	cfg Config
	log *slog.Logger
	// have are the IP families of this node.
	have    [model.Families]bool
	metrics *metrics
	// nudge has room for one: there is something to look at.
	nudge chan struct{}
	// synced is closed once the source has delivered what there is.
	synced chan struct{}

	// modelMu is held for the time of a batch of events or a refresh.
	modelMu sync.Mutex
	model   *model.Model
	// local offers the model to readers.
	local *localstate.Server

	// renderMu is never held while an answer is waited for.
	renderMu sync.Mutex
	renderer *render.Renderer

	// queue knows what has come in and is not committed.
	queue queue
	// health and servers answer over HTTP for what is committed.
	health  *health.Proxy
	servers *health.Servers

	statusMu sync.Mutex
	status   Status
	// resync is the outcome of a resync that the session made by itself, if
	// it failed; the publisher takes it.
	resync error
}

// Status is how far the frontend is.
type Status struct {
	// Synced is true once the source has delivered what there is.
	Synced bool
	// Published is true once everything of then was committed.
	Published bool
	// Revision is that of the commit with the last acknowledged update.
	Revision uint64
	// Acknowledged is when that was.
	Acknowledged time.Time
	// Pending is since when the oldest event waits for the commit that carries
	// it; zero if none does.
	Pending time.Time
	// Quarantined are the Services that the aggregator refused, by name.
	Quarantined []string
}

// New returns a frontend. It does no I/O but to look for IPv6.
func New(cfg Config) (*Frontend, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure services: %w", err)
	}
	have := families("/proc")
	if err := cfg.check(have); err != nil {
		return nil, fmt.Errorf("configure services: %w", err)
	}
	r, err := render.New(render.Config{
		Families: have, Detect: cfg.Detect, MasqueradeAll: cfg.MasqueradeAll,
		MasqueradeBit: *cfg.MasqueradeBit, NodePortAddresses: cfg.NodePortAddresses,
	})
	if err != nil {
		return nil, fmt.Errorf("configure services: %w", err)
	}
	f := &Frontend{
		cfg: cfg, log: cfg.Logger, have: have,
		nudge: make(chan struct{}, 1), synced: make(chan struct{}),
		model: model.New(model.Config{
			NodeName: cfg.NodeName, NodeAddresses: cfg.NodeAddresses, IgnoreExternalIPs: cfg.IgnoreExternalIPs,
			Notify: func(n model.Notice) { cfg.warnOf(n.Service, n.Reason, n.Message) }, Logger: cfg.Logger,
		}),
		renderer: r,
		queue:    queue{now: cfg.Now},
	}
	f.local = localstate.New(state{f})
	if f.metrics, err = newMetrics(cfg.Registerer, newProxyMetrics(have, cfg.IgnoreExternalIPs), &f.queue, f.rendered); err != nil {
		return nil, fmt.Errorf("configure services: %w", err)
	}
	if f.health, err = health.NewProxy(health.ProxyConfig{
		Families: have, Timeout: 2 * cfg.SyncPeriod, Pending: f.queue.oldest, Now: cfg.Now, Registerer: cfg.Registerer,
	}); err != nil {
		return nil, fmt.Errorf("configure services: %w", err)
	}
	f.servers = health.NewServers(health.ServersConfig{
		NodeName: cfg.NodeName, Families: have, NodePortAddresses: cfg.NodePortAddresses,
		Healthy: f.health.Healthy, Network: cfg.Network, Events: cfg.Events, Logger: cfg.Logger,
	})
	cfg.warn(have)
	if err := cfg.Source.Subscribe(source.Subscription{
		User: Publisher, Kinds: objects.Kinds(cfg.NodeName, f.model), Deliver: f.deliver, Synced: f.setSynced,
	}); err != nil {
		return nil, fmt.Errorf("configure services: %w", err)
	}
	return f, nil
}

// Run works until ctx ends, and returns nil then. It leaves all rules in place. The
// source runs on its own, because other frontends may follow it too.
func (f *Frontend) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.publish(ctx) })
	g.Go(func() error { return f.servers.Run(ctx) })
	return g.Wait()
}

// Status returns how far the frontend is.
func (f *Frontend) Status() Status {
	f.statusMu.Lock()
	defer f.statusMu.Unlock()
	st := f.status
	st.Pending = f.queue.oldest()
	return st
}

// Health answers for the node as kube-proxy does.
func (f *Frontend) Health() *health.Proxy { return f.health }

// Model returns the local model as it is now.
func (f *Frontend) Model() model.Snapshot {
	f.modelMu.Lock()
	defer f.modelMu.Unlock()
	return f.model.Snapshot()
}

// deliver applies a batch of events to the model, under one lock so that no refresh
// sees half of it.
func (f *Frontend) deliver(events []source.Event) {
	services, slices := 0, 0
	f.modelMu.Lock()
	for _, e := range events {
		e.Apply()
		kind := strings.TrimSuffix(e.Resource(), "s")
		switch kind {
		case "service":
			services++
		case "endpointslice":
			slices++
		}
		f.metrics.events.WithLabelValues(kind).Inc()
	}
	dirty := f.model.Dirty()
	if dirty {
		// Under the lock of the model, so that a refresh and the queue agree.
		f.queue.add(services, slices)
	}
	eligible := f.model.NodeEligible()
	f.modelMu.Unlock()
	f.metrics.proxy.events(services, slices, dirty, f.cfg.Now())
	select {
	case <-f.synced:
		f.health.SetEligible(eligible)
	default:
		// While the frontend starts, a missing Node does not matter.
	}
	if dirty {
		f.wake()
	}
}

// setSynced notes that the source has delivered everything that existed.
func (f *Frontend) setSynced() {
	f.queue.start()
	f.statusMu.Lock()
	f.status.Synced = true
	f.statusMu.Unlock()
	f.modelMu.Lock()
	eligible := f.model.NodeEligible()
	f.modelMu.Unlock()
	f.health.SetEligible(eligible)
	close(f.synced)
}

// wake makes the publisher look.
func (f *Frontend) wake() {
	select {
	case f.nudge <- struct{}{}:
	default:
	}
}

// refresh returns what changed in the model.
func (f *Frontend) refresh() model.Changes {
	f.modelMu.Lock()
	defer f.modelMu.Unlock()
	c := f.model.Refresh()
	f.local.Changed(&c)
	f.queue.take()
	f.cfg.noteNode(c.Node, f.have)
	f.metrics.changes.Add(float64(len(c.Services)))
	f.metrics.model.Set(float64(f.model.Stats().Revision))
	return c
}

// service returns a Service as it was last refreshed, nil if there is none.
func (f *Frontend) service(key model.Key) *model.Service {
	f.modelMu.Lock()
	defer f.modelMu.Unlock()
	return f.model.Service(key)
}

// render brings the renderer up to date.
func (f *Frontend) render(c model.Changes) render.Update {
	f.renderMu.Lock()
	defer f.renderMu.Unlock()
	return f.renderer.Update(c)
}

// load brings the renderer up to date before a snapshot.
func (f *Frontend) load(c model.Changes) {
	f.renderMu.Lock()
	defer f.renderMu.Unlock()
	f.renderer.Load(c)
}

// snapshot returns the fragment as it should be now. The session calls it, too.
func (f *Frontend) snapshot(string) *weftv1.Fragment {
	f.renderMu.Lock()
	defer f.renderMu.Unlock()
	return f.renderer.Snapshot()
}

func (f *Frontend) rendered() (services, endpoints int) {
	f.renderMu.Lock()
	defer f.renderMu.Unlock()
	return f.renderer.Services(), f.renderer.Elements()
}
