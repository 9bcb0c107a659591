package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/policy/links"
	"github.com/weft-proxy/weft/frontends/policy/localstate"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/objects"
	"github.com/weft-proxy/weft/frontends/policy/render"
	"github.com/weft-proxy/weft/frontends/policy/status"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/source"
)

const wakeInterval = time.Minute

// portion is the Renderer.Size of an update; the kernel takes less than 100 ms for it.
const portion = 4096

var errUnanswered = errors.New("the aggregator has not answered")

// Frontend follows network policies and publishes their rules.
type Frontend struct {
	cfg       Config
	state     *state
	content   *content
	publisher *publish.Publisher[model.PolicyID, model.Policy]
	local     *localstate.Tables
	metrics   *metrics
	// Of drops and flows.
	connection *connection
	drops      *drops
	flows      *flows
	start      *start
	links      *links.Tracker
	runtime    *containerRuntime // nil without Config.RuntimeSocket
	status     *status.Writer    // nil without Config.StatusClient
	have       [2]bool           // of the node
	// Pods with policies and an unknown interface; the lock of state is held.
	unlinked map[types.UID]unlinked
}

// Status is the progress of a Frontend.
type Status struct {
	// Synced is true once the source has delivered all existing objects.
	Synced bool
	publish.Status
	// Pending is the arrival of the oldest uncommitted event, or zero.
	Pending time.Time
	// Rejected policies are rejected by the aggregator, or impossible to render.
	Rejected []model.PolicyID
}

// New returns a frontend and subscribes it to its source, which must not run yet.
func New(cfg Config) (*Frontend, error) {
	f, err := newFrontend(cfg)
	if err != nil {
		return nil, fmt.Errorf("configure network policies: %w", err)
	}
	return f, nil
}

func newFrontend(cfg Config) (*Frontend, error) {
	cfg.setDefaults()
	if err := source.Check(cfg.Source, cfg.NodeName); err != nil {
		return nil, err
	}
	f := &Frontend{cfg: cfg, have: publish.Families("/proc"), start: &start{synced: make(chan struct{}), ready: make(chan struct{})}, connection: &connection{socket: cfg.Socket}, unlinked: make(map[types.UID]unlinked)}
	f.drops = newDrops(f.connection)
	r, err := render.New(render.Config{Families: f.have, RecheckFor: cfg.RecheckFor, Start: cfg.Start, DropLog: cfg.DropLog, Now: cfg.Now})
	if err != nil {
		return nil, err
	}
	notices := &notices{events: cfg.Events}
	m := model.New(model.Config{NodeName: cfg.NodeName, Notify: notices.notify, Logger: cfg.Logger})
	f.state = &state{model: m, backlog: publish.NewBacklog(cfg.Now), outcome: f.outcome, want: f.want, degraded: f.publishing, refreshed: f.refreshed}
	f.local = localstate.New(f.state, cfg.DropLog)
	f.content = &content{Renderer: r, state: f.state, adopt: func(ports map[netip.Addr]string) { f.links.Adopt(ports) }}
	if f.runtime, err = newContainerRuntime(f); err != nil {
		return nil, err
	}
	if f.links, err = links.New(links.Config{Deliver: f.setLinks, Logger: cfg.Logger}); err != nil {
		return nil, err
	}
	if f.publisher, err = publish.New(publish.Config[model.PolicyID, model.Policy]{
		Socket: cfg.Socket, Local: cfg.Local, Publisher: Publisher, Fragment: render.Fragment,
		Renderer: f.content, Observer: &observer{Frontend: f}, Compare: model.ComparePolicies,
		Portion: portion, Ready: f.start.ready, Backlog: f.state.backlog, MinInterval: cfg.MinInterval, MaxRetry: cfg.MaxRetry, Now: cfg.Now, Logger: cfg.Logger,
	}); err != nil {
		return nil, err
	}
	if f.metrics, err = newMetrics(cfg.Registerer, f); err != nil {
		return nil, err
	}
	if f.flows, err = newFlows(f); err != nil {
		return nil, err
	}
	if err := f.subscribeStatus(); err != nil {
		return nil, err
	}
	if !f.have[1] {
		cfg.Logger.Info("this node does not have IPv6: only IPv4 is enforced")
	}
	return f, cfg.Source.Subscribe(source.Subscription{
		User: Publisher, Kinds: objects.Kinds(cfg.NodeName, m), Deliver: f.deliver, Synced: f.setSynced, Unread: f.start.setUnread,
	})
}

func (f *Frontend) subscribeStatus() error {
	if f.cfg.StatusClient == nil {
		return nil
	}
	var err error
	if f.status, err = status.New(status.Config{Client: f.cfg.StatusClient, NodeName: f.cfg.NodeName, Logger: f.cfg.Logger}); err != nil {
		return err
	}
	return f.cfg.Source.Subscribe(f.status.Subscription())
}

// Run works until ctx ends, and then returns nil; all rules stay. It does not run the source.
func (f *Frontend) Run(ctx context.Context) error {
	defer f.connection.close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.publisher.Run(ctx) })
	g.Go(func() error { return f.links.Run(ctx) })
	if f.runtime != nil {
		g.Go(func() error { f.runtime.plugin.Run(ctx); return nil })
	}
	if f.status != nil {
		g.Go(func() error { f.status.Run(ctx); return nil })
	}
	g.Go(func() error { f.tick(ctx); return nil })
	g.Go(func() error { f.flows.run(ctx); return nil })
	return g.Wait()
}

func (f *Frontend) tick(ctx context.Context) {
	f.awaitStart(ctx)
	tick := time.NewTicker(wakeInterval)
	defer tick.Stop()
	for warned := ""; ; {
		if ctx.Err() == nil {
			warned = f.warnBridges(thisHost(), warned)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.publisher.Wake()
		}
	}
}

func (f *Frontend) Status() Status {
	return Status{Synced: f.isSynced(), Status: f.publisher.Status(), Pending: f.state.backlog.Oldest(), Rejected: f.publisher.Refused()}
}

// Name returns the frontend's name in conditions.
func (f *Frontend) Name() string { return "network-policies" }

// Ready returns nil once this process has committed its rules, if all manifests were valid and
// Config.Start can be enforced.
func (f *Frontend) Ready() error {
	status := f.publisher.Status()
	thing, unknown := f.unknown()
	switch {
	case status.Published && thing != unknownManifests:
		return f.startDenies()
	case status.Err != nil:
		return fmt.Errorf("network policies: not published: %w", status.Err)
	case unknown != nil:
		return unknown
	case !f.isSynced():
		return errors.New("network policies: not published: the policies and pods of the cluster are not known yet")
	default:
		return errors.New("network policies: not published yet")
	}
}

// Healthy returns nil if rules are in force, and no change waits longer than twice Config.MaxRetry.
func (f *Frontend) Healthy() error {
	status := f.publisher.Status()
	if !status.Restored || errors.Is(status.Err, client.ErrPermission) {
		if err := f.Ready(); err != nil {
			return err
		}
	}
	pending := f.state.backlog.Oldest()
	if wait := f.cfg.Now().Sub(pending); f.isSynced() && !pending.IsZero() && wait > 2*f.cfg.MaxRetry {
		_, unknown := f.unknown()
		why := cmp.Or(status.Err, unknown, errUnanswered)
		return fmt.Errorf("network policies: a change waits for %s: %w", wait.Round(time.Second), why)
	}
	return nil
}

// Degraded returns why the rules in force may not be the wanted ones, or nil.
func (f *Frontend) Degraded() error {
	status := f.Status()
	if err := status.Status.Degraded(); err != nil {
		return fmt.Errorf("network policies: %w", err)
	}
	if err := f.Healthy(); err != nil {
		return err
	}
	if n := len(status.Rejected); n > 0 {
		first := status.Rejected[0]
		return fmt.Errorf("network policies: %d refused, the first is %s %s: %w", n, first.Kind(), strings.TrimPrefix(first.Namespace+"/"+first.Name, "/"), cmp.Or(f.publisher.Outcome(first).Reason, errUnanswered))
	}
	_, err := f.unknown()
	return err
}

func (f *Frontend) publishing() error {
	status := f.publisher.Status()
	return status.Degraded()
}

func (f *Frontend) want(ids ...model.PolicyID) { f.publisher.Want(ids...) }

func (f *Frontend) outcome(id model.PolicyID) publish.Outcome { return f.publisher.Outcome(id) }

// Tables returns the tables of the local state.
func (f *Frontend) Tables() []client.Table { return f.local.Tables() }

func (f *Frontend) deliver(events []source.Event) {
	counts, dirty := f.state.apply(events)
	for resource, n := range counts {
		f.metrics.Events.WithLabelValues(kindOf(resource)).Add(float64(n))
	}
	if dirty {
		f.publisher.Wake()
	}
}

func (f *Frontend) setLinks(changes map[netip.Addr]model.Link) {
	_, dirty := f.state.change("links", func(m *model.Model) {
		for a, l := range changes {
			m.SetLink(a, l)
		}
	})
	if dirty {
		f.publisher.Wake()
	}
}

func kindOf(resource string) string {
	if kind, ok := strings.CutSuffix(resource, "ies"); ok {
		return kind + "y"
	}
	return strings.TrimSuffix(resource, "s")
}

func (f *Frontend) setSynced() {
	f.state.backlog.Restart()
	close(f.start.synced)
}

func (f *Frontend) isSynced() bool {
	select {
	case <-f.start.synced:
		return true
	default:
		return false
	}
}

// refreshed is called under the lock of the model.
func (f *Frontend) refreshed(c *model.Changes) {
	f.local.Changed(c)
	f.noteLinks(c.Pods)
	f.metrics.changes.WithLabelValues("pod").Add(float64(len(c.Pods)))
	f.metrics.changes.WithLabelValues("policy").Add(float64(len(c.Policies)))
	f.metrics.changes.WithLabelValues("set").Add(float64(len(c.Sets)))
}
