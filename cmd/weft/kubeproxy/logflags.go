package kubeproxy

import (
	"log/slog"

	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// debugVerbosity is the verbosity of kube-proxy that corresponds to weft's level debug.
const debugVerbosity = 4

// addLogFlags adds the flags of the log that every component of Kubernetes has.
func (o *Options) addLogFlags(flags *pflag.FlagSet) {
	c := &o.config.Logging
	flags.StringVar(&c.Format, "logging-format", c.Format, "text or json: see --log-format")
	flags.VarP(logsapi.VerbosityLevelPflag(&c.Verbosity), "v", "v", "verbosity of the log as kube-proxy counts it: 4 and more is --log-level debug")
	flags.DurationVar(&c.FlushFrequency.Duration.Duration, "log-flush-frequency", c.FlushFrequency.Duration.Duration, "no effect")
	flags.Var(logsapi.VModuleConfigurationPflag(&c.VModule), "vmodule", "no effect")
	flags.BoolVar(&c.Options.Text.SplitStream, "log-text-split-stream", false, "no effect")
	flags.Var(&c.Options.Text.InfoBufferSize, "log-text-info-buffer-size", "no effect")
	flags.BoolVar(&c.Options.JSON.SplitStream, "log-json-split-stream", false, "no effect")
	flags.Var(&c.Options.JSON.InfoBufferSize, "log-json-info-buffer-size", "no effect")
	hide(flags, "log-flush-frequency", "vmodule", "log-text-split-stream", "log-text-info-buffer-size", "log-json-split-stream",
		"log-json-info-buffer-size")
}

// copyLogFlags overrides the settings of a file by the flags of the log that were given.
func (o *Options) copyLogFlags(flags *pflag.FlagSet, to *logsapi.LoggingConfiguration) {
	from := &o.config.Logging
	for name, set := range map[string]func(){
		"logging-format":            func() { to.Format = from.Format },
		"v":                         func() { to.Verbosity = from.Verbosity },
		"log-flush-frequency":       func() { to.FlushFrequency = from.FlushFrequency },
		"vmodule":                   func() { to.VModule = from.VModule },
		"log-text-split-stream":     func() { to.Options.Text.SplitStream = from.Options.Text.SplitStream },
		"log-text-info-buffer-size": func() { to.Options.Text.InfoBufferSize = from.Options.Text.InfoBufferSize },
		"log-json-split-stream":     func() { to.Options.JSON.SplitStream = from.Options.JSON.SplitStream },
		"log-json-info-buffer-size": func() { to.Options.JSON.InfoBufferSize = from.Options.JSON.InfoBufferSize },
	} {
		if given(flags, name) {
			set()
		}
	}
}

// level returns the level of weft's log for a verbosity of kube-proxy.
func level(v logsapi.VerbosityLevel) slog.Level {
	if v >= debugVerbosity {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// given reports whether a flag exists and was given.
func given(flags *pflag.FlagSet, name string) bool {
	f := flags.Lookup(name)
	return f != nil && f.Changed
}
