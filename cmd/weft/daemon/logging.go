package daemon

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
)

type logFlags struct {
	level  slog.Level
	format string
}

func (l *logFlags) add(set *pflag.FlagSet) {
	set.TextVar(&l.level, "log-level", slog.LevelInfo, "debug, info, warn or error; kube-proxy's -v 4 is debug")
	set.StringVar(&l.format, "log-format", "text", "text or json, as kube-proxy's --logging-format")
}

func (l logFlags) withProxy(proxy *kubeproxy.Settings, set *pflag.FlagSet) logFlags {
	if proxy.LogGiven && !set.Changed("log-level") {
		l.level = proxy.LogLevel
	}
	if proxy.LogGiven && !set.Changed("log-format") {
		l.format = proxy.LogFormat
	}
	return l
}

func (l logFlags) logger(w io.Writer) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: l.level}
	switch l.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	default:
		return nil, cli.Usagef("--log-format %q: want text or json", l.format)
	}
}
