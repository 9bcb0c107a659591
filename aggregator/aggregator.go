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
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/findings"
	"github.com/weft-proxy/weft/aggregator/flows"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/unconfirmed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/lint"
	"github.com/weft-proxy/weft/nft/set"
)

// Kernel is the part of nft/kernel that the writer needs.
type Kernel interface {
	// Commit carries out all ops or none. A *kernel.BatchError names the op that the kernel refused; any
	// other error leaves the outcome unknown. DumpSet, as the other methods that begin so, reads
	// concurrently with other calls.
	flows.Kernel
	// Check returns the error of a Commit of the ops, and changes nothing.
	Check(ops []kernel.Op) error
	// Dump returns the tables that are marked as weft's, with their content.
	Dump() ([]kernel.Table, error)
	// Adopt claims the tables of a process that has ended, and returns their
	// content. A *kernel.OwnedError says that the process still owns them.
	Adopt() ([]kernel.Table, error)
	// Watch reports changes that others make.
	Watch(ctx context.Context) (<-chan kernel.Change, error)
	// Owner reports whether the kernel keeps other processes from changing the tables. Such tables are
	// not watched: a watch would report nothing, and slows each commit down because the kernel reports
	// every element.
	Owner() bool
	// Unprotected reports whether other processes can change some tables although Owner is true: those
	// that a weft or a kernel without ownership left. It is known after the adoption.
	Unprotected() bool
	// These read what packets change in a table.
	DumpLive(table nft.TableID, sets []*set.Set, limit int) (*kernel.Live, error)
	DumpObjects(table nft.TableID) (*kernel.Live, error)
	DumpElements(table nft.TableID, sets []*set.Set, limit int, counted bool) (*kernel.Live, error)
}

// Flows deletes conntrack entries; see flows.Conntrack.
type Flows = flows.Conntrack

// Defaults of Config.
const (
	// DefaultRate is the number of commits a second under load.
	DefaultRate = rate.Limit(20)
	// DefaultBurst is the number of commits that are made without a wait after an
	// idle time.
	DefaultBurst = 10
	// DefaultRetry is the time between attempts to reconcile a kernel after an
	// error.
	DefaultRetry = time.Second
	// DefaultSessionGrace is how long the fragments of sessions are kept after a
	// restart until their publishers return.
	DefaultSessionGrace = 30 * time.Second
	// DefaultReadyGrace is how long after a start Converged waits for the
	// publishers from before the restart.
	DefaultReadyGrace = 30 * time.Second
	// DefaultDrain bounds how long a graceful stop commits pending updates.
	DefaultDrain = 5 * time.Second
)

// Config describes an Aggregator. New rejects negative values.
type Config struct {
	// Kernel is required.
	Kernel Kernel
	// ReadAll reads the tables of all programs, concurrently with calls of the Kernel. They are valid until
	// they are closed. If it is nil, only findings between fragments are found.
	ReadAll func() (rules *eval.Ruleset, closeRules func(), err error)
	// Flows removes stale UDP flows; nil leaves them.
	Flows Flows
	// StateDir has the record of fragments and the durable fragments. If it is
	// empty, no state is kept, and elements that are adopted have no owner.
	StateDir string
	// OwnTables has the publishers of tables that a frontend has for itself, by the names of
	// the tables: content that no fragment claims goes when the frontend is back, even without a
	// record.
	OwnTables map[string]string
	// HistoryEntries and HistoryBytes bound the history of commits in StateDir. If one is 0,
	// none is recorded.
	HistoryEntries int
	HistoryBytes   int64
	// Access has the rights and limits of publishers; nil allows everything, unlike
	// the nil Access of aggregator/server.
	Access *access.Control
	// Rate is the number of commits a second under load, and Burst the number of
	// commits without a wait after an idle time; 0 means DefaultRate and DefaultBurst.
	Rate  rate.Limit
	Burst int
	// Retry is the time between attempts to repair; 0 means DefaultRetry.
	Retry time.Duration
	// SessionGrace is how long after a restart the fragments of sessions are kept
	// until their publishers return; 0 means DefaultSessionGrace.
	SessionGrace time.Duration
	// ReadyGrace is how long after a start Converged waits for the publishers from
	// before it; 0 means DefaultReadyGrace.
	ReadyGrace time.Duration
	// Findings says to look for findings after commits: it takes up to 2 % of a CPU, whatever a commit changes.
	Findings bool
	// Needs returns what the node must be able to send and receive; a drop of it is a finding. Nil means nothing.
	Needs func() []lint.Need
	// Drain bounds a graceful stop; 0 means DefaultDrain.
	Drain time.Duration
	// Standby makes Run wait while another process holds the tables. Without it Run
	// returns the *kernel.OwnedError.
	Standby bool
	// Version is the daemon's version, for messages; it may be empty.
	Version string
	// Logger gets one line for each commit; nil discards.
	Logger *slog.Logger
	// Registerer registers the metrics; nil registers nothing.
	Registerer prometheus.Registerer
	// Now is the clock; nil means time.Now.
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
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	queue   *queue
	hub     *hub
	flows   *flows.Flusher
	dir     *statedir.Dir
	history *history.Recorder
	// unconfirmed has the fragments that wait for a confirmation.
	unconfirmed *unconfirmed.Keeper
	// roster knows the publishers.
	roster   *roster
	statuses *statuses
	// sessions counts the sessions, for their IDs.
	sessions atomic.Uint64
	// requests are functions that the writer calls between two commits.
	requests chan func(*writer)
	writer   *writer
	// inspector looks for findings. inspecting is held by the call that looks for those of a plan.
	inspector  *findings.Inspector
	inspecting chan struct{}
	// liveDump is held by the call that reads live values.
	liveDump chan struct{}

	// admission is what updates are checked against.
	admission admission.Config
	// refusals bounds the lines of the log about rejections.
	refusals *access.Repeats
	// scope has the declarations that admission compiles against.
	scope atomic.Pointer[desired.Scope]

	stage atomic.Pointer[stage]
	// began is when the first update could be committed, with the reading of the monotonic
	// clock; settled is true after Converged has returned nil.
	began   atomic.Pointer[time.Time]
	settled atomic.Bool
	// returned is true after all fragments of before the start were back.
	returned atomic.Bool
	// foreign and unsaved are what the writer last met: changes by other processes, nil if
	// there were none, and why the record was not stored, nil if it was.
	foreign atomic.Pointer[foreignChanges]
	unsaved atomic.Pointer[error]
	ready   chan struct{}
	// stopped is closed when Run returns.
	stopped chan struct{}
}

// stage is a part of the life of an Aggregator. While it starts, err is nil and running
// is false.
type stage struct {
	running bool
	// err is why updates cannot be committed; nil if they are or will be.
	err error
	// over is closed when the next stage begins.
	over chan struct{}
}

// enter begins a stage, and ends the one before.
func (a *Aggregator) enter(running bool, err error) {
	before := a.stage.Swap(&stage{running: running, err: err, over: make(chan struct{})})
	if before != nil {
		close(before.over)
	}
}

// New makes an Aggregator; it does nothing until Run. It fails if the Config is not
// valid or a metric cannot be registered.
func New(cfg Config) (*Aggregator, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure aggregator: %w", err)
	}
	a := &Aggregator{cfg: cfg, log: cfg.Logger, hub: newHub(cfg.Now), ready: make(chan struct{}), stopped: make(chan struct{}), liveDump: make(chan struct{}, 1), inspecting: make(chan struct{}, 1)}
	a.queue, a.roster, a.statuses, a.requests = newQueue(cfg.Now, a.limited), newRoster(cfg.Now), newStatuses(), make(chan func(*writer))
	a.refusals = access.NewRepeats(func(publisher, reason string, withheld int) {
		a.log.Info("more updates rejected", "publisher", publisher, "reason", reason, "not_logged", withheld)
	})
	m, err := newMetrics(cfg.Registerer, a.queue.len)
	if err != nil {
		return nil, fmt.Errorf("configure aggregator: %w", err)
	}
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
		Conntrack: cfg.Flows, NoteErrors: m.stateErrors.WithLabelValues(statedir.KindFlows), Drain: cfg.Drain, Publish: a.hub.publish, Log: a.log, Metrics: m.flows,
	}
	if cfg.StateDir != "" {
		fc.Save = a.dir.SaveFlows
	}
	a.flows = flows.NewFlusher(fc)
	a.inspector = a.newInspector()
	a.writer = newWriter(a)
	a.admission = admission.Config{Access: cfg.Access, Durable: cfg.StateDir != "", Room: a.dir.Room, Status: a.statuses.get, Version: cfg.Version, Now: cfg.Now}
	a.scope.Store(a.writer.state.Scope())
	a.enter(false, nil)
	return a, nil
}

// Ready is closed once the kernel's tables are adopted and updates are being
// committed.
func (a *Aggregator) Ready() <-chan struct{} { return a.ready }

// Stopped is closed when Run has returned.
func (a *Aggregator) Stopped() <-chan struct{} { return a.stopped }

// Pending returns the number of updates that wait for a commit.
func (a *Aggregator) Pending() int { return a.queue.len() }

// Run adopts what the kernel holds and commits updates until ctx ends. Then it
// commits pending updates and returns nil. Only Run's goroutine calls Commit, Dump and
// Adopt of the Kernel; those that read and Owner are called
// concurrently with them. An error means that the process cannot go on.
//
// Possible errors: ErrCleanedUp (which is not a failure), *kernel.OwnedError
// (another process owns the tables, and Config.Standby is false),
// store.ErrInUse, those of Kernel.Watch, and the kernel's at
// start.
func (a *Aggregator) Run(ctx context.Context) error {
	defer a.stop()
	// The goroutines that serve the writer end after it.
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
	// Before the first dump, so that nothing is missed in between.
	changes, err := a.writer.watch(ctx)
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
		changes = a.writer.rewatch(ctx)
	}
	began := a.cfg.Now()
	a.began.Store(&began)
	a.enter(true, nil)
	close(a.ready)
	a.inspector.Wake()
	return a.writer.loop(ctx, changes)
}

// stop answers everything that is still queued.
func (a *Aggregator) stop() {
	a.enter(false, ErrStopped)
	for _, s := range a.queue.close() {
		s.answer(Result{Err: ErrStopped})
	}
	a.hub.close()
	a.refusals.Close()
	close(a.stopped)
}

// admitting waits until updates can be compiled against the declarations of the
// adopted tables, or until done is closed.
// Possible errors: ErrStandby, ErrStopped, ErrGone.
func (a *Aggregator) admitting(done <-chan struct{}) error {
	for {
		s := a.stage.Load()
		if s.running || s.err != nil {
			return s.err
		}
		select {
		case <-s.over:
		case <-done:
			return ErrGone
		}
	}
}

// Version returns the daemon's version, as configured.
func (a *Aggregator) Version() string { return a.cfg.Version }

// Features returns the names of what this daemon can do and others cannot. PROTOCOL.md
// explains each.
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
	return append(out, "live", "sets")
}

// OwnsTables reports whether the kernel keeps all other processes away from the
// tables.
func (a *Aggregator) OwnsTables() bool { return a.cfg.Kernel.Owner() }
