package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/cmd/weft/statuspage"
	"github.com/weft-proxy/weft/cmd/weft/takeover"
)

// Verb names a command.
type Verb string

// The verbs.
const (
	VerbRun        Verb = "run"
	VerbAggregator Verb = "aggregator"
	VerbServices   Verb = "services"
	VerbPolicy     Verb = "policy"
)

func (v Verb) hasAggregator() bool { return v == VerbRun || v == VerbAggregator }

func (v Verb) hasServices() bool { return v == VerbRun || v == VerbServices }

func (v Verb) mayHavePolicy() bool { return v == VerbRun || v == VerbPolicy }

func (v Verb) followsCluster() bool { return v != VerbAggregator }

// Groups in the help.
const (
	proxyFlags  = "Flags of kube-proxy"
	weftFlags   = "Flags of weft"
	policyGroup = "Flags of network policies"
	stateFlags  = "Flags of the state directory"
	expertFlags = "Expert flags"
)

// Flags are the flags of a daemon.
type Flags struct {
	verb          Verb
	groups        cliflag.NamedFlagSets
	set           *pflag.FlagSet
	log           logFlags
	http          httpSettings
	aggregator    aggregatorFlags
	frontend      frontendFlags
	services      serviceFlags
	policy        policyFlags
	configuration configurationFlags
	// takeover removes kube-proxy's rules, handover weft's.
	takeover, handover bool
	drain              time.Duration
}

// AddFlags adds the flags of a verb; the caller parses set.
func AddFlags(set *pflag.FlagSet, verb Verb) *Flags {
	f := &Flags{verb: verb, set: set, configuration: configurationFlags{proxy: kubeproxy.New()}}
	for _, title := range []string{proxyFlags, weftFlags, policyGroup, stateFlags, expertFlags} {
		f.groups.FlagSet(title)
	}
	proxy, own, expert := f.groups.FlagSet(proxyFlags), f.groups.FlagSet(weftFlags), f.groups.FlagSet(expertFlags)
	f.log.add(own)
	f.http.add(proxy, verb)
	if verb.hasAggregator() {
		f.aggregator.add(own, f.groups.FlagSet(stateFlags), expert)
	}
	if verb.followsCluster() {
		f.frontend.add(own, verb)
	}
	if verb.hasServices() {
		f.services.add(own)
	}
	if verb.mayHavePolicy() {
		f.policy.add(f.groups.FlagSet(policyGroup), expert, verb)
	}
	if verb == VerbRun {
		own.BoolVar(&f.takeover, flagTakeover, false, "remove the rules that kube-proxy left on this node, once weft's own are in force and kube-proxy has ended")
		own.DurationVar(&f.drain, flagDrain, takeover.Drain, "with --"+flagTakeover+": how long connections through kube-proxy's IPVS may go on before they are ended")
		own.BoolVar(&f.handover, flagHandover, false, "on SIGTERM, if the label "+takeover.Label+" of the Node is neither "+takeover.Weft+" nor "+takeover.Beside+", update the rules until those of kube-proxy are in force, and then remove them")
	}
	f.configuration.add(proxy, own, verb)
	for _, group := range f.groups.FlagSets {
		set.AddFlagSet(group)
	}
	return f
}

// Usages returns the help in groups, with the command's flag --help.
func (f *Flags) Usages(help *pflag.Flag) string {
	f.groups.FlagSet(weftFlags).AddFlag(help)
	var b strings.Builder
	for _, title := range f.groups.Order {
		if group := f.groups.FlagSets[title]; group.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", title, group.FlagUsages())
		}
	}
	return b.String()
}

// Run runs the daemon until ctx ends or a part fails. It returns nil after a cleanup or a change of
// kube-proxy's configuration file.
//
// Possible errors: a *cli.UsageError or an *access.FileError for a wrong setting; the error of a part.
func (f *Flags) Run(ctx context.Context, stderr io.Writer, version string) error {
	settings, log, err := f.complete(stderr)
	if err != nil {
		return err
	}
	if done, err := f.configuration.runOnce(ctx, settings, log); done || err != nil {
		return err
	}
	log.Info(fmt.Sprintf("weft %s starts", f.verb), "version", version)
	if f.verb.hasAggregator() {
		if err := kubeproxy.CheckKernel(); err != nil {
			return err
		}
	}
	d := &daemon{Flags: f, settings: settings, version: version, log: log, registry: newRegistry(version)}
	if f.verb.mayHavePolicy() {
		if err := f.policy.check(f.set, d.hasPolicy()); err != nil {
			return err
		}
	}
	if err := f.checkHandover(); err != nil {
		return err
	}
	if f.takeover {
		if err := settings.HTTP.checkTakeover(); err != nil {
			return err
		}
	}
	if f.verb.followsCluster() {
		if err := d.newFrontends(); err != nil {
			return err
		}
	}
	end := ctx.Done()
	if f.handover {
		// The daemon outlives the signal until the handover is done.
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limitGarbage(false)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return newIdler().run(ctx) })
	if err := d.start(ctx, g); err != nil {
		cancel()
		// The first error is the cause of the others.
		_ = g.Wait()
		return err
	}
	if f.handover {
		h := d.newHandover()
		g.Go(func() error {
			defer cancel()
			h.run(ctx, end)
			return nil
		})
	}
	err = g.Wait()
	if errors.Is(err, aggregator.ErrCleanedUp) || errors.Is(err, kubeproxy.ErrChanged) {
		return nil
	}
	return err
}

type daemon struct {
	*Flags
	settings *settings
	version  string
	log      *slog.Logger
	registry *prometheus.Registry
	// nil without a frontend
	cluster *cluster
	// in the order of their start
	frontends []frontend
	// nil without the Service frontend
	proxy   proxyHealth
	monitor *conditions.Monitor
	clock   *wallClock
	servers *serverErrors
	// nil unless weft removes the rules of kube-proxy
	successor *successor
	tables    *aggregator.Aggregator
	// nil before serve
	socket *server.Server
	local  server.Local
	// nil before serve
	releasePorts context.CancelFunc
}

// start returns at once with --standby: the parts start when the other weft has ended.
func (d *daemon) start(ctx context.Context, g *errgroup.Group) error {
	start := d.startAggregator
	if !d.verb.hasAggregator() {
		start = d.startFrontends
	}
	if err := start(ctx, g); err != nil {
		return err
	}
	d.tune(ctx, g)
	d.follow(ctx, g)
	if socket := os.Getenv(notifySocket); socket != "" {
		g.Go(func() error {
			if err := notifyStarted(ctx, socket, d.published, notifyPatience); err != nil {
				d.log.Warn("cannot report the start", "error", err)
			}
			return nil
		})
	}
	return nil
}

func (d *daemon) serve(ctx context.Context, g *errgroup.Group, healthy check) error {
	// A handover gives up kube-proxy's ports, and ends d.successor with them.
	inPlace, release := context.WithCancel(ctx)
	ports, err := d.settings.HTTP.listen(inPlace)
	if err != nil {
		release()
		return err
	}
	d.releasePorts = release
	srv := &httpServers{
		httpSettings: d.settings.HTTP, ports: ports, flags: d.set, version: d.version, healthy: healthy, monitor: d.monitor, errors: d.servers, proxy: d.proxy, log: d.log,
	}
	if d.verb.hasAggregator() {
		srv.page = statuspage.New(statuspage.Config{Socket: d.aggregator.server.Socket, Version: d.version})
	}
	if d.cluster != nil {
		srv.events = d.cluster.events
		d.cluster.run(ctx, g, d.verb.hasServices())
	}
	if d.verb.mayHavePolicy() {
		srv.published = d.healthy
	}
	for _, f := range d.frontends {
		g.Go(func() error { return f.Run(ctx) })
	}
	srv.run(inPlace, g, d.registry)
	g.Go(func() error { d.monitor.Run(ctx); return nil })
	d.serveTables(ctx, g, cmp.Or(d.frontend.socket, d.aggregator.server.Socket))
	if d.successor != nil {
		g.Go(func() error { d.successor.run(inPlace); return nil })
	}
	return nil
}
