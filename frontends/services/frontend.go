package services

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
	"github.com/weft-proxy/weft/frontends/services/source"
)

// Frontend follows Services and publishes the rules for them.
type Frontend struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	// nudge has room for one: there is something to look at.
	nudge chan struct{}
	// synced is closed once the source has delivered what there is.
	synced   chan struct{}
	syncOnce sync.Once

	// modelMu is held for the time of a batch of events or a refresh.
	modelMu sync.Mutex
	model   *model.Model

	// renderMu is never held while an answer is waited for.
	renderMu sync.Mutex
	renderer *render.Renderer

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
	// Pending is since when an update waits for its acknowledgement, or for
	// being tried again; zero if none does.
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
	r, err := render.New(render.Config{
		Families: have, Detect: cfg.Detect, MasqueradeAll: cfg.MasqueradeAll,
		MasqueradeBit: *cfg.MasqueradeBit, NodePortAddresses: cfg.NodePortAddresses,
	})
	if err != nil {
		return nil, fmt.Errorf("configure services: %w", err)
	}
	f := &Frontend{
		cfg: cfg, log: cfg.Logger,
		nudge: make(chan struct{}, 1), synced: make(chan struct{}),
		model: model.New(model.Config{
			NodeName: cfg.NodeName, NodeAddresses: cfg.NodeAddresses, IgnoreExternalIPs: cfg.IgnoreExternalIPs, Logger: cfg.Logger,
		}),
		renderer: r,
	}
	if f.metrics, err = newMetrics(cfg.Registerer, f.rendered); err != nil {
		return nil, fmt.Errorf("configure services: %w", err)
	}
	cfg.warn(have)
	return f, nil
}

// Run works until ctx ends, and returns nil then. It leaves all rules in place.
func (f *Frontend) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		err := f.cfg.Source.Run(ctx, f.deliver)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("follow services: %w", err)
		}
		return nil
	})
	g.Go(func() error { return f.publish(ctx) })
	return g.Wait()
}

// Status returns how far the frontend is.
func (f *Frontend) Status() Status {
	f.statusMu.Lock()
	defer f.statusMu.Unlock()
	return f.status
}

// Model returns the local model as it is now.
func (f *Frontend) Model() model.Snapshot {
	f.modelMu.Lock()
	defer f.modelMu.Unlock()
	return f.model.Snapshot()
}

// deliver takes a batch of events: one lock, so that no refresh sees half of it.
func (f *Frontend) deliver(events []source.Event) {
	synced := false
	f.modelMu.Lock()
	for _, e := range events {
		var kind string
		switch e := e.(type) {
		case source.ServiceSet:
			kind = "service"
			f.model.SetService(e.Service)
		case source.ServiceGone:
			kind = "service"
			f.model.DeleteService(e.Name)
		case source.SliceSet:
			kind = "endpointslice"
			f.model.SetSlice(e.Slice)
		case source.SliceGone:
			kind = "endpointslice"
			f.model.DeleteSlice(e.Name)
		case source.NodeSet:
			kind = "node"
			f.model.SetNode(e.Node)
		case source.NodeGone:
			kind = "node"
			f.model.DeleteNode(e.Name)
		case source.ServiceCIDRSet:
			kind = "servicecidr"
			f.model.SetServiceCIDR(e.ServiceCIDR)
		case source.ServiceCIDRGone:
			kind = "servicecidr"
			f.model.DeleteServiceCIDR(e.Name)
		case source.Synced:
			synced = true
			continue
		default:
			f.log.Error("source delivered an unknown event: ignored", "event", fmt.Sprintf("%T", e))
			continue
		}
		f.metrics.events.WithLabelValues(kind).Inc()
	}
	dirty := f.model.Dirty()
	f.modelMu.Unlock()
	if synced {
		f.syncOnce.Do(func() {
			f.statusMu.Lock()
			f.status.Synced = true
			f.statusMu.Unlock()
			close(f.synced)
		})
	}
	if dirty {
		f.wake()
	}
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
