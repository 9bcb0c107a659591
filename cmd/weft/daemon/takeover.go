package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/takeover"
	"github.com/weft-proxy/weft/frontends/event"
)

const (
	flagTakeover = "takeover"
	flagDrain    = "takeover-drain"
)

const (
	takeoverRetry = time.Second
	takeoverWatch = time.Minute
)

// successor removes kube-proxy's rules once weft's are in force and kube-proxy has ended, and
// watches for new ones.
type successor struct {
	// ready returns why weft's rules are not in force, running why kube-proxy may still have ports.
	ready, running check
	// remove ends connections through IPVS if cut is true.
	remove func(ctx context.Context, cut bool) (takeover.Report, error)
	// drain is how long they may go on since the first removal.
	drain time.Duration
	since time.Time
	find  func(context.Context) ([]string, error)
	event func(kind, reason, message string)
	log   *slog.Logger
	// removed is what earlier attempts have removed.
	removed []string

	mu  sync.Mutex
	err error
}

func (d *daemon) newSuccessor() *successor {
	return &successor{
		ready: d.published, running: d.servers.running, event: d.cluster.events.Node, log: d.log.With("component", "takeover"), drain: d.drain,
		remove: func(ctx context.Context, cut bool) (takeover.Report, error) {
			return takeover.Remove(ctx, takeover.Config{Cut: cut})
		},
		find: func(ctx context.Context) ([]string, error) {
			what, _, err := takeover.Find(ctx, takeover.Config{})
			return what, err
		},
	}
}

func (d *daemon) published() error {
	for _, f := range d.frontends {
		if err := f.Ready(); err != nil {
			return err
		}
	}
	return nil
}

// checkTakeover requires both addresses, because their ports show the end of kube-proxy.
func (s *httpSettings) checkTakeover() error {
	if s.metrics == "" || s.healthz == "" {
		return cli.Usagef("--%s: it needs --%s and --%s: that kube-proxy has ended is seen by its ports, which weft then has", flagTakeover, flagMetrics, flagHealthz)
	}
	return nil
}

func (s *successor) failing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *successor) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *successor) run(ctx context.Context) {
	for logged := ""; ; {
		err := s.take(ctx)
		s.set(err)
		if err == nil {
			break
		}
		text := err.Error()
		if errors.Is(err, takeover.ErrWaiting) {
			text = takeover.ErrWaiting.Error() // without its numbers
		}
		if text != logged {
			logged = text
			s.log.Info("the rules of kube-proxy stay for now", "reason", err)
		}
		if !cli.Pause(ctx, takeoverRetry) {
			return
		}
	}
	for cli.Pause(ctx, takeoverWatch) {
		what, err := s.find(ctx)
		if err == nil && len(what) > 0 {
			err = fmt.Errorf("kube-proxy has written rules again: it runs beside weft. Take one of them off this node: %s", strings.Join(what, "; "))
		}
		s.set(err)
	}
}

// take removes kube-proxy's rules, or returns why they stay.
func (s *successor) take(ctx context.Context) error {
	if err := s.ready(); err != nil {
		return fmt.Errorf("the rules of kube-proxy stay until those of weft are in force: %w", err)
	}
	if err := s.running(); err != nil {
		return fmt.Errorf("the rules of kube-proxy stay until it has ended: %w", err)
	}
	if s.since.IsZero() {
		s.since = time.Now()
	}
	report, err := s.remove(ctx, time.Since(s.since) >= s.drain)
	for _, what := range report.Removed {
		s.log.Info("removed rules of kube-proxy", "what", what)
	}
	for _, notice := range report.Notices {
		s.log.Warn("what kube-proxy left remains in part", "notice", notice)
	}
	s.removed = append(s.removed, report.Removed...)
	if err != nil {
		return err
	}
	// weft migrate waits for the event, also if an earlier process has removed the rules.
	message := "kube-proxy has ended and left no rules"
	if len(s.removed) > 0 {
		message = "removed what kube-proxy left: " + strings.Join(s.removed, "; ")
	}
	s.event(event.Normal, takeover.ReasonTookOver, message)
	return nil
}
