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

// A watch would miss changes through links to links and bind mounts.
const recheck = 2 * time.Second

// ErrChanged means that the file differs from the start.
var ErrChanged = errors.New("the configuration has changed")

// Follower configures Options.Follow.
type Follower struct {
	// At the start.
	Flags *pflag.FlagSet
	// Same compares the settings at the start with the file's; nil means Settings.Same.
	Same func(was, is *Settings) bool
	// Required.
	Logger *slog.Logger
}

// Follow returns ErrChanged when the file differs from s, which must come from a file, and nil when
// ctx ends. An error is logged once for each content.
func (o *Options) Follow(ctx context.Context, s *Settings, f Follower) error {
	log, same := f.Logger, f.Same
	if same == nil {
		same = (*Settings).Same
	}
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
		now, err := o.fromData(f.Flags, s.File, data)
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
