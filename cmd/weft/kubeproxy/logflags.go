package kubeproxy

import (
	"log/slog"

	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// debugVerbosity is the least -v for weft's level debug.
const debugVerbosity = 4

func addLogFlags(flags *pflag.FlagSet, c *logsapi.LoggingConfiguration) {
	text, json := &c.Options.Text, &c.Options.JSON
	flags.StringVar(&c.Format, "logging-format", c.Format, "text or json: see --log-format")
	flags.VarP(logsapi.VerbosityLevelPflag(&c.Verbosity), "v", "v", "verbosity of the log as kube-proxy counts it: 4 and more is --log-level debug")
	// The help has --log-format and --log-level.
	for _, name := range []string{"logging-format", "v"} {
		_ = flags.MarkHidden(name)
	}
	flags.DurationVar(&c.FlushFrequency.Duration.Duration, "log-flush-frequency", c.FlushFrequency.Duration.Duration, noEffect)
	flags.Var(logsapi.VModuleConfigurationPflag(&c.VModule), "vmodule", noEffect)
	flags.BoolVar(&text.SplitStream, "log-text-split-stream", text.SplitStream, noEffect)
	flags.Var(&text.InfoBufferSize, "log-text-info-buffer-size", noEffect)
	flags.BoolVar(&json.SplitStream, "log-json-split-stream", json.SplitStream, noEffect)
	flags.Var(&json.InfoBufferSize, "log-json-info-buffer-size", noEffect)
}

func copyLogFlags(from *pflag.FlagSet, to *logsapi.LoggingConfiguration) {
	flags := flagsOf(func(flags *pflag.FlagSet) { addLogFlags(flags, to) })
	from.Visit(func(f *pflag.Flag) {
		if flags.Lookup(f.Name) != nil {
			// The value is valid.
			_ = flags.Set(f.Name, f.Value.String())
		}
	})
}

func flagsOf(add func(*pflag.FlagSet)) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(flags)
	return flags
}

func level(v logsapi.VerbosityLevel) slog.Level {
	if v >= debugVerbosity {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
