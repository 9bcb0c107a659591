package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/cmd/weft/sysctl"
	"github.com/weft-proxy/weft/conntrack"
)

type settings struct {
	*kubeproxy.Settings
	HTTP httpSettings
	// file with the rights of publishers; may be ""
	accessFile string
}

type configurationFlags struct {
	files []string
	proxy *kubeproxy.Options
}

func (c *configurationFlags) add(proxy, own *pflag.FlagSet, verb Verb) {
	help := "file with kube-proxy's KubeProxyConfiguration, or one that says who may publish what (see deploy/examples); may be given once for each"
	switch verb {
	case VerbAggregator:
		help = "file that says who may publish what (see deploy/examples/config.yaml; without one only root and this user may), or kube-proxy's; may be given once for each"
		c.proxy.AddHostFlags(proxy)
	case VerbPolicy:
		c.proxy.AddClientFlags(proxy)
		return
	case VerbServices:
		help = "file with a KubeProxyConfiguration; most flags have no effect beside it"
		c.proxy.AddFlags(proxy)
		c.proxy.HideHostFlags(proxy)
	default:
		c.proxy.AddFlags(proxy)
	}
	own.StringArrayVar(&c.files, "config", nil, help)
}

// complete begins the log with the warnings of the settings.
func (f *Flags) complete(stderr io.Writer) (*settings, *slog.Logger, error) {
	proxyFile, accessFile, err := f.configuration.sort(f.verb)
	if err != nil {
		return nil, nil, err
	}
	proxy, err := f.configuration.proxy.Complete(f.set, proxyFile)
	if err != nil {
		return nil, nil, err
	}
	log, err := f.log.withProxy(proxy, f.set).logger(stderr)
	if err != nil {
		return nil, nil, err
	}
	for _, text := range proxy.Warnings {
		log.Warn(text)
	}
	s := &settings{Settings: proxy, HTTP: f.http.withProxy(f.verb, proxy), accessFile: accessFile}
	if f.verb == VerbServices {
		if f.configuration.proxy.InitOnly {
			return nil, nil, cli.Usagef("--init-only: weft services has no capability to set up connection tracking: use weft run --init-only")
		}
		if s.HostGiven && s.File == "" && !s.OOMGiven {
			log.Warn("weft aggregator sets up connection tracking: give it the --conntrack flags")
		}
	}
	return s, log, nil
}

func (c *configurationFlags) sort(verb Verb) (proxyFile, accessFile string, err error) {
	for _, file := range c.files {
		into, kind := &accessFile, kubeproxy.KindOf(file)
		switch {
		case kind == kubeproxy.Kind, kind == "" && verb == VerbServices:
			into = &proxyFile
		case kind == access.Kind && verb == VerbServices:
			return "", "", cli.Usagef("--config %s: that is a configuration for weft aggregator or weft run", file)
		case kind == access.Kind, kind == "":
			// Reading the file reports its errors.
		default:
			return "", "", fmt.Errorf("%s: got kind %q: want %s of %s, or %s of %s", file, kind, access.Kind, access.APIVersion, kubeproxy.Kind, kubeproxy.APIVersion)
		}
		if *into != "" {
			return "", "", cli.Usagef("--config %s and %s: give one file of each kind", *into, file)
		}
		*into = file
	}
	return proxyFile, accessFile, nil
}

func (c *configurationFlags) runOnce(ctx context.Context, s *settings, log *slog.Logger) (done bool, err error) {
	switch {
	case c.proxy.WriteTo != "":
		return true, s.Write(c.proxy.WriteTo)
	case c.proxy.InitOnly:
		return true, setUpConntrack(ctx, s, log)
	}
	return false, nil
}

// setUpConntrack prepares the node for a weft that later runs with CAP_NET_ADMIN alone.
func setUpConntrack(ctx context.Context, s *settings, log *slog.Logger) error {
	flows, err := conntrack.Open()
	if err != nil {
		return err
	}
	defer func() { _ = flows.Close() }()
	// Reading the table makes the kernel load the module.
	nowhere := conntrack.Destination{Addr: netip.IPv4Unspecified()}
	if _, err := flows.Reconcile(ctx, []conntrack.Destination{nowhere}); err != nil {
		log.Warn("cannot read the connection tracking table", "error", err)
	}
	return sysctl.Run(ctx, sysctl.Config{Conntrack: s.Conntrack, Once: true, Logger: log})
}

// tune applies kube-proxy's defaults in weft run, which replaces it; in other verbs only values from
// a flag or a file.
func (d *daemon) tune(ctx context.Context, g *errgroup.Group) {
	s := d.settings
	host := d.verb == VerbRun || d.verb == VerbAggregator && s.HostGiven
	if host || d.verb == VerbServices && s.OOMGiven {
		setOOMScore(ctx, s, d.log)
	}
	if host {
		g.Go(func() error { return sysctl.Run(ctx, sysctl.Config{Conntrack: s.Conntrack, Logger: d.log}) })
	}
}

// Only an explicit score causes a warning: the kubelet sets its own for critical pods.
func setOOMScore(ctx context.Context, s *settings, log *slog.Logger) {
	level := slog.LevelDebug
	if s.OOMGiven {
		level = slog.LevelWarn
	}
	if err := sysctl.SetOOMScore("/", s.OOMScoreAdj); err != nil {
		log.Log(ctx, level, "cannot set the OOM score: lowering it requires CAP_SYS_RESOURCE", "want", s.OOMScoreAdj, "error", err)
	}
}

// follow ends the daemon when kube-proxy's configuration file changes. The aggregator alone follows
// only the settings of the machine.
func (d *daemon) follow(ctx context.Context, g *errgroup.Group) {
	if d.settings.File == "" {
		return
	}
	same := (*kubeproxy.Settings).Same
	if d.verb == VerbAggregator {
		same = (*kubeproxy.Settings).SameHost
	}
	g.Go(func() error { return d.configuration.proxy.Follow(ctx, d.set, d.settings.Settings, same, d.log) })
}
