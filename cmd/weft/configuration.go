package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/cmd/weft/sysctl"
	"github.com/weft-proxy/weft/conntrack"
)

// configuration is what a daemon was told by flags and by the files of --config.
type configuration struct {
	// files are those of --config.
	files   []string
	options *kubeproxy.Options
	// access is the file that says who may publish what; empty if there is none.
	access string
	// proxyOnly says that this daemon has no use for such a file.
	proxyOnly bool
	settings  *kubeproxy.Settings
}

func newConfiguration() *configuration { return &configuration{options: kubeproxy.New()} }

// begin reads the files and makes the log; the first lines of that are what the
// operator should know. http gets the addresses; nil leaves them as they are, as
// kube-proxy's are those of the Service frontend.
func (c *configuration) begin(cmd *cobra.Command, logs *logging, http *endpoints) (*slog.Logger, error) {
	proxy, err := c.split()
	if err != nil {
		return nil, err
	}
	c.settings, err = c.options.Complete(cmd.Flags(), proxy)
	if err != nil {
		if errors.As(err, new(*kubeproxy.FlagError)) {
			return nil, usage("%w", err)
		}
		return nil, err
	}
	s := c.settings
	if s.LogGiven && !cmd.Flags().Changed("log-level") {
		logs.level = s.LogLevel
	}
	if s.LogGiven && !cmd.Flags().Changed("log-format") {
		logs.format = s.LogFormat
	}
	if http != nil {
		http.metrics, http.healthz = s.MetricsAddress, s.HealthzAddress
		http.hardFail, http.profiling = s.Configuration.BindAddressHardFail, s.Configuration.EnableProfiling
		http.configuration = s.Configuration
	}
	log, err := logs.logger(cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	for _, text := range s.Warnings {
		log.Warn(text)
	}
	return log, nil
}

// split tells the files of --config apart by their kind, and returns kube-proxy's.
func (c *configuration) split() (proxy string, err error) {
	for _, file := range c.files {
		into, kind := &c.access, kubeproxy.KindOf(file)
		switch {
		case kind == kubeproxy.Kind, kind == "" && c.proxyOnly:
			into = &proxy
		case kind == access.Kind && c.proxyOnly:
			return "", usage("--config %s: that is a configuration for weft aggregator or weft run", file)
		case kind == access.Kind, kind == "":
			// What is wrong with it comes out when it is read.
		default:
			return "", fmt.Errorf("%s: got kind %q: want %s of %s, or %s of %s", file, kind, access.Kind, access.APIVersion, kubeproxy.Kind, kubeproxy.APIVersion)
		}
		if *into != "" {
			return "", usage("--config %s and %s: give one file of each kind", *into, file)
		}
		*into = file
	}
	return proxy, nil
}

// early does what --write-config-to and --init-only ask for, and reports whether
// that was all.
func (c *configuration) early(ctx context.Context, log *slog.Logger) (bool, error) {
	switch {
	case c.options.WriteTo != "":
		return true, c.settings.Write(c.options.WriteTo)
	case c.options.InitOnly:
		return true, c.setUp(ctx, log)
	}
	return false, nil
}

// setUp sets connection tracking up for a weft that runs with CAP_NET_ADMIN alone.
func (c *configuration) setUp(ctx context.Context, log *slog.Logger) error {
	flows, err := conntrack.Open()
	if err != nil {
		return err
	}
	defer func() { _ = flows.Close() }()
	// To look into the table makes the kernel load it. No flow goes to this one.
	nowhere := conntrack.Live{Addr: netip.IPv4Unspecified()}
	if _, err := flows.Reconcile(ctx, []conntrack.Live{nowhere}); err != nil {
		log.Warn("connection tracking cannot be read", "error", err)
	}
	return sysctl.Run(ctx, sysctl.Config{Conntrack: c.settings.Conntrack, Once: true, Logger: log})
}

// tune brings the machine's connection tracking and this process's OOM score to
// what is configured. Without a word of the operator weft run goes by the defaults
// of kube-proxy, which it replaces; weft aggregator and weft services, which may run
// where there is no Kubernetes, leave them alone.
func (c *configuration) tune(ctx context.Context, g *errgroup.Group, log *slog.Logger) {
	c.tuneProcess(ctx, log)
	g.Go(func() error { return sysctl.Run(ctx, sysctl.Config{Conntrack: c.settings.Conntrack, Logger: log}) })
}

// tuneProcess sets the OOM score. Nobody misses it who did not ask for it: the
// kubelet has a score for the containers of a node's critical pods.
func (c *configuration) tuneProcess(ctx context.Context, log *slog.Logger) {
	level := slog.LevelDebug
	if c.settings.OOMGiven {
		level = slog.LevelWarn
	}
	if err := sysctl.SetOOMScore("/", c.settings.OOMScoreAdj); err != nil {
		log.Log(ctx, level, "the OOM score stays as it is: to lower it takes CAP_SYS_RESOURCE", "want", c.settings.OOMScoreAdj, "error", err)
	}
}

// follow ends the daemon when the file of kube-proxy's configuration changes: it is
// started again with what is in force then.
func (c *configuration) follow(ctx context.Context, g *errgroup.Group, cmd *cobra.Command, log *slog.Logger) {
	c.followIf(ctx, g, kubeproxy.Follower{Flags: cmd.Flags(), Logger: log})
}

// followHost is follow for who goes by the machine's settings alone.
func (c *configuration) followHost(ctx context.Context, g *errgroup.Group, cmd *cobra.Command, log *slog.Logger) {
	c.followIf(ctx, g, kubeproxy.Follower{Flags: cmd.Flags(), Same: (*kubeproxy.Settings).SameHost, Logger: log})
}

func (c *configuration) followIf(ctx context.Context, g *errgroup.Group, f kubeproxy.Follower) {
	if c.settings.File != "" {
		g.Go(func() error { return c.options.Follow(ctx, c.settings, f) })
	}
}
