package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// logging holds the flags of a daemon's log.
type logging struct {
	level  slog.Level
	format string
}

func (l *logging) addFlags(flags *pflag.FlagSet) {
	flags.TextVar(&l.level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	flags.StringVar(&l.format, "log-format", "text", "text or json")
}

func (l *logging) logger(w io.Writer) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: l.level}
	switch l.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	default:
		return nil, usage("--log-format %q: want text or json", l.format)
	}
}

// component names a part of the process in its log lines.
func component(log *slog.Logger, name string) *slog.Logger {
	return log.With(slog.String("component", name))
}

// sayVersion is a daemon's first line.
func sayVersion(log *slog.Logger, verb string) {
	log.Info(fmt.Sprintf("weft %s starts", verb), "version", version)
}
