package kubeproxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// recheck is the pause between reads: a watch would miss changes through links to links and bind
// mounts.
const recheck = 2 * time.Second

// ErrChanged means that the file differs from the start.
var ErrChanged = errors.New("the configuration has changed")

// Follow returns ErrChanged when same is false for s, the settings at the start, and the settings of
// the changed file, and nil when ctx ends. An error is logged once for each content.
func (o *Options) Follow(ctx context.Context, flags *pflag.FlagSet, s *Settings, same func(was, is *Settings) bool, log *slog.Logger) error {
	last, lost := s.data, ""
	for cli.Pause(ctx, recheck) {
		data, err := access.Read(s.File)
		if err != nil {
			if err.Error() != lost {
				log.Error("cannot read the configuration any more: the settings of the start stay in force", "error", err)
			}
			lost = err.Error()
			continue
		}
		lost = ""
		if bytes.Equal(data, last) {
			continue
		}
		last = data
		now, err := o.fromData(flags, s.File, data)
		switch {
		case err != nil:
			log.Error("the changed configuration has an error: the settings of the start stay in force", "error", err)
		case !same(s, now):
			log.Info("the configuration has changed: weft ends, to be started again with it; its rules stay", "file", s.File)
			return ErrChanged
		}
	}
	return nil
}
