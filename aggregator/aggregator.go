package aggregator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/events"
	"github.com/weft-proxy/weft/aggregator/findings"
	"github.com/weft-proxy/weft/aggregator/flows"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/queue"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/status"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/unconfirmed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/lint"
)

// Kernel is the part of nft/kernel used by the writer.
type Kernel interface {
	// Commit carries out all ops or none. A *kernel.BatchError names the refused op. After any other error,
	// except kernel.ErrTooLarge, the outcome counts as unknown. All Dump methods may run concurrently with
	// other calls.
	flows.Kernel
	// Check returns the error that Commit would return and changes nothing.
	Check(ops []kernel.Op) error
	// Dump returns the tables with weft's mark.
	Dump() ([]kernel.Table, error)
	// Adopt claims weft's tables and returns them. While another process owns the tables, Adopt returns a
	// *kernel.OwnedError or kernel.ErrHeld.
	Adopt() ([]kernel.Table, error)
	Watch(ctx context.Context) (<-chan kernel.Event, error)
	// Owner reports whether the kernel protects the tables from other processes. Protected tables are not
	// watched: the kernel would report every element and slow each commit.
	Owner() bool
	// Unprotected reports, after Adopt, whether other processes can change some tables although Owner is
	// true: tables left by a weft or kernel without ownership.
	Unprotected() bool
	// DumpLive reads values changed by packets.
	DumpLive(table nft.TableID, q kernel.LiveQuery) (*kernel.Live, error)
}

// Flows deletes conntrack entries.
type Flows = flows.Conntrack

// Defaults of the Config fields with these names.
const (
	// DefaultRate is in commits a second.
	DefaultRate         = rate.Limit(20)
	DefaultBurst        = 10
	DefaultRetry        = time.Second
	DefaultSessionGrace = 30 * time.Second
	DefaultReadyGrace   = 30 * time.Second
	DefaultDrain        = 5 * time.Second
)

// Config describes an Aggregator. New rejects negative values.
type Config struct {
	Kernel Kernel
	// ReadAll reads the tables of all programs, valid until closeRules, concurrently with calls of the
	// Kernel. If nil, only findings between fragments are found.
	ReadAll func() (rules *eval.Ruleset, closeRules func(), err error)
	// Flows may be nil: stale flows stay.
	Flows Flows
	// StateDir holds the record and the durable fragments. If empty, adopted elements have no owner.
	StateDir string
	// OwnTables maps tables used by one frontend alone to their publishers. Unclaimed content there is
	// removed when the publisher is back, even without a record.
	OwnTables map[string]string
	// HistoryEntries and HistoryBytes bound the history in StateDir; 0 disables it.
	HistoryEntries int
	HistoryBytes   int64
	// Access may be nil: everything is allowed, unlike in aggregator/server.
	Access *access.Control
	// Rate is the commits per second under load, Burst the commits without a wait after an idle time. Retry
	// is the wait after an error. For these and the durations below, 0 means the default.
	Rate  rate.Limit
	Burst int
	Retry time.Duration
	// SessionGrace is how long fragments of sessions wait for their publishers after a restart.
	SessionGrace time.Duration
	// ReadyGrace is how long Converged waits for earlier publishers after a start.
	ReadyGrace time.Duration
	// Findings enables package findings, for up to 2 % of a CPU.
	Findings bool
	// Needs returns the traffic whose drop is a finding. May be nil.
	Needs func() []lint.Need
	// Drain bounds the commits of pending updates at a graceful stop.
	Drain time.Duration
	// Standby makes Run wait while another process holds the tables.
	Standby bool
	Version string
	// Logger gets one line per commit; nil discards.
	Logger *slog.Logger
	// Registerer may be nil.
	Registerer prometheus.Registerer
	// Now may be nil: time.Now.
	Now func() time.Time
}

func (c *Config) setDefaults() {
	c.Rate, c.Burst = cmp.Or(c.Rate, DefaultRate), cmp.Or(c.Burst, DefaultBurst)
	c.Retry, c.Drain = cmp.Or(c.Retry, DefaultRetry), cmp.Or(c.Drain, DefaultDrain)
	c.SessionGrace, c.ReadyGrace = cmp.Or(c.SessionGrace, DefaultSessionGrace), cmp.Or(c.ReadyGrace, DefaultReadyGrace)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

func (c *Config) validate() error {
	var errs []error
	if c.Kernel == nil {
		errs = append(errs, errors.New("no Kernel"))
	}
	if c.Rate < 0 || c.Burst < 0 {
		errs = append(errs, fmt.Errorf("got Rate %v and Burst %d: want more than 0", c.Rate, c.Burst))
	}
	if c.HistoryEntries < 0 || c.HistoryBytes < 0 {
		errs = append(errs, fmt.Errorf("got HistoryEntries %d and HistoryBytes %d: want at least 0", c.HistoryEntries, c.HistoryBytes))
	}
	if min(c.Retry, c.Drain, c.SessionGrace, c.ReadyGrace) < 0 {
		errs = append(errs, errors.New("negative Retry, Drain, SessionGrace or ReadyGrace"))
	}
	return errors.Join(errs...)
}

// Aggregator merges fragments and commits them.
type Aggregator struct {
	*Life
	*Health
	*Reads

	cfg         Config
	log         *slog.Logger
	metrics     *metrics
	queue       *queue.Queue[*submission]
	hub         *events.Hub
	flows       *flows.Flusher
	dir         *statedir.Dir
	history     *history.Recorder
	unconfirmed *unconfirmed.Keeper
	roster      *status.Publishers
	statuses    *status.Fragments
	// sessions is the last session ID.
	sessions atomic.Uint64
	// requests are called by the writer between two commits.
	requests chan func(*writer)
	writer   *writer
	// inspecting is held by the call that inspects a plan.
	inspector  *findings.Inspector
	inspecting chan struct{}

	admission admission.Config
	tell      *observers
	scope     atomic.Pointer[merge.Scope]
}

// New returns an Aggregator, idle until Run.
func New(cfg Config) (*Aggregator, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure aggregator: %w", err)
	}
	a := &Aggregator{cfg: cfg, log: cfg.Logger, Life: newLife(), hub: events.New(cfg.Now), inspecting: make(chan struct{}, 1)}
	a.queue, a.roster, a.statuses, a.requests = queue.New[*submission](cfg.Now, func(publisher string) bool { return cfg.Access.Publisher(publisher).Limited() }), status.NewPublishers(cfg.Now), status.NewFragments(), make(chan func(*writer))
	m := newMetrics(cfg.Registerer, a.queue.Len)
	a.metrics = m
	st := store.New(store.Config{
		Path: cfg.StateDir, Retry: cfg.Retry, Logger: a.log,
		Failed: func(kind string) { m.stateErrors.WithLabelValues(kind).Inc() },
	})
	a.dir = statedir.New(st, a.log)
	a.history = history.New(history.Config{
		Store: st, MaxEntries: cfg.HistoryEntries, MaxBytes: cfg.HistoryBytes, Lost: func(n int) { m.historyLost.Add(float64(n)) },
	})
	a.unconfirmed = unconfirmed.New(unconfirmed.Config{Store: st, Revert: a.takeBack, Allow: a.mayKeep, Retry: cfg.Retry, Logger: a.log})
	fc := flows.Config{
		Conntrack: cfg.Flows, NoteErrors: m.stateErrors.WithLabelValues(statedir.KindFlows), Drain: cfg.Drain, Publish: a.hub.Publish, Log: a.log, Metrics: m.flows,
	}
	if cfg.StateDir != "" {
		fc.Save = a.dir.SaveFlows
	}
	a.flows = flows.NewFlusher(fc)
	a.inspector = a.newInspector()
	a.Health = &Health{life: a.Life, cfg: &a.cfg, statuses: a.statuses, roster: a.roster, dir: a.dir}
	a.Reads = newReads(a)
	a.tell = newObservers(a)
	a.writer = newWriter(a)
	a.admission = admission.Config{Access: cfg.Access, Durable: cfg.StateDir != "", Room: a.dir.Room, Status: a.statuses.Get, Version: cfg.Version, Now: cfg.Now}
	a.scope.Store(a.writer.state.Scope())
	return a, nil
}

// Pending returns the number of updates waiting for a commit.
func (a *Aggregator) Pending() int { return a.queue.Len() }

// Run adopts the tables in the kernel, commits updates until ctx ends, and then the pending ones. Only its
// goroutine calls Commit, Dump and Adopt of the Kernel. After an error the process cannot go on.
//
// Possible errors: ErrCleanedUp (not a failure), *kernel.OwnedError (another process owns the tables, and
// Config.Standby is false), store.ErrInUse, the errors of Kernel.Watch, and the kernel's at start.
func (a *Aggregator) Run(ctx context.Context) error {
	defer a.stop()
	// These goroutines end after the writer.
	behind, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { a.flows.Run(behind) })
	wg.Go(func() { a.flows.Follow(behind) })
	wg.Go(func() { a.writer.purger.Run(behind) })
	if a.cfg.Findings {
		wg.Go(func() { a.inspector.Run(behind) })
	}
	wg.Go(func() {
		select {
		case <-a.ready:
			a.unconfirmed.Run(behind)
		case <-behind.Done():
		}
	})
	defer func() {
		cancel()
		wg.Wait()
		if err := a.dir.Close(); err != nil {
			a.log.Error("state directory is not closed", "error", err)
		}
	}()
	// Watch before the first dump, so that no change is missed.
	changes, err := a.writer.keeper.watch(ctx)
	if err != nil {
		return err
	}
	if err := a.writer.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if changes == nil && a.cfg.Kernel.Unprotected() {
		changes = a.writer.keeper.rewatch(ctx)
	}
	a.run(a.cfg.Now())
	a.inspector.Wake()
	return a.writer.loop(ctx, changes)
}

func (a *Aggregator) stop() {
	a.enter(false, ErrStopped)
	for _, s := range a.queue.Close() {
		s.answer(Result{Err: ErrStopped})
	}
	a.hub.Close(ErrStopped)
	a.tell.refusals.Close()
	close(a.stopped)
}

// Version returns Config.Version.
func (a *Aggregator) Version() string { return a.cfg.Version }

// Features returns the names of the optional features of this daemon (PROTOCOL.md).
func (a *Aggregator) Features() []string {
	var out []string
	if a.unconfirmed.Enabled() {
		out = append(out, "confirm")
	}
	if a.cfg.Flows != nil {
		out = append(out, "conntrack")
	}
	if a.cfg.StateDir != "" {
		out = append(out, "durable")
	}
	out = append(out, "expiration")
	if a.history.Enabled() {
		out = append(out, "history")
	}
	return append(out, "live", "packed", "sets")
}

// OwnsTables reports whether the kernel protects the tables from other processes.
func (a *Aggregator) OwnsTables() bool { return a.cfg.Kernel.Owner() }
