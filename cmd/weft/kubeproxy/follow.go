package kubeproxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
)

// recheck is how often the file is read. The kubelet takes a minute to bring a
// changed ConfigMap to the node, so two seconds are soon; and to read it sees what
// a watch misses, such as links to links and bind mounts.
const recheck = 2 * time.Second

// ErrChanged says that the configuration file says something else than at the
// start.
var ErrChanged = errors.New("the configuration has changed")

// Follower watches the file that settings come from.
type Follower struct {
	// Flags are those that the settings were made with.
	Flags *pflag.FlagSet
	// Same says that a change of the settings does not matter; nil means
	// Settings.Same.
	Same func(was, is *Settings) bool
	// Tick is when the file is read; nil means every 2 s.
	Tick <-chan time.Time
	// Logger gets what becomes of changes. Required.
	Logger *slog.Logger
}

// Follow returns ErrChanged once the file of s means something else, and nil when
// ctx ends. What cannot be used is logged, once.
func (o *Options) Follow(ctx context.Context, s *Settings, f Follower) error {
	log, same, tick := f.Logger, f.Same, f.Tick
	if same == nil {
		same = (*Settings).Same
	}
	if tick == nil {
		ticker := time.NewTicker(recheck)
		defer ticker.Stop()
		tick = ticker.C
	}
	last, lost := s.data, ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
		data, err := read(s.File)
		if err != nil {
			if err.Error() != lost {
				log.Error("the configuration cannot be read any more: the one of the start stays", "error", err)
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
			log.Error("the changed configuration cannot be used: the one of the start stays", "error", err)
		case !same(s, now):
			log.Info("the configuration has changed: weft ends, to be started with it; its rules stay", "file", s.File)
			return ErrChanged
		}
	}
}
