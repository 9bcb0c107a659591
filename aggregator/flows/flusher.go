package flows

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/retry"
	"github.com/weft-proxy/weft/conntrack"
)

const (
	// maxStale bounds the destinations waiting for a removal. Beyond it, all flows are compared.
	maxStale   = 1 << 16
	maxEvents  = 256
	retryDelay = time.Second
	// answerDelay is the wait after a removal for answers under way: see conntrack.Stale.
	answerDelay = 500 * time.Millisecond
)

// Conntrack is the part of package conntrack used by a Flusher.
type Conntrack interface {
	Flush(ctx context.Context, stale []conntrack.Stale) (deleted int, err error)
	Reconcile(ctx context.Context, live []conntrack.Destination) (deleted int, err error)
}

// Watcher is a Conntrack that follows local addresses.
type Watcher interface {
	// Watch calls added with each new local address or range, until ctx ends.
	Watch(ctx context.Context, added func(netip.Prefix)) error
}

// Metrics counts removed entries.
type Metrics struct {
	// Flows counts conntrack entries, Purged entries of affinity maps.
	Flows, FlowErrors, Purged, PurgeErrors prometheus.Counter
}

// Config describes a Flusher.
type Config struct {
	// Conntrack may be nil: flows stay.
	Conntrack Conntrack
	// Save replaces the stored list of destinations without a backend but with flows to remove. It
	// need not survive a reboot. If Save is nil, the list is in memory.
	Save       func([]conntrack.Stale) error
	NoteErrors prometheus.Counter
	// Drain bounds how long Run continues after its context.
	Drain time.Duration
	// Publish must not block or call the Flusher.
	Publish func(*weftv1.WatchResponse)
	Log     *slog.Logger
	Metrics *Metrics
}

// Flusher removes UDP flows after commits, on its own goroutine.
type Flusher struct {
	cfg     Config
	task    *retry.Task
	overdue chan struct{}
	local   chan netip.Prefix

	// saving is held while noted is saved, for the order of the lists. It is locked before mu.
	saving sync.Mutex
	// mu is not held while saving, because the writer waits for it.
	mu sync.Mutex
	// noted are saved, in the order of their commits.
	noted []conntrack.Stale
	// The next pass removes stale, and compares all flows with live if all is true.
	stale  []conntrack.Stale
	live   []conntrack.Destination
	all    bool
	events []*weftv1.WatchResponse
	busy   bool
	// committing is true between Before and After.
	committing bool
	// incomplete is true if some stale destinations are lost or were not removed. Reconcile adds the
	// noted ones.
	incomplete bool
}

// NewFlusher returns a Flusher, idle until Run.
func NewFlusher(cfg Config) *Flusher {
	f := &Flusher{cfg: cfg, overdue: make(chan struct{}, 1), local: make(chan netip.Prefix)}
	f.task = retry.New(retry.Config{
		Do: f.pass, Retry: retryDelay, Logger: cfg.Log, Failing: "cannot remove stale UDP flows", Failed: cfg.Metrics.FlowErrors.Inc,
	})
	return f
}

// Overdue delivers a value after Ask, an error, or too many stale destinations. The receiver must call
// Reconcile.
func (f *Flusher) Overdue() <-chan struct{} { return f.overdue }

// Local delivers each new local address or range, or the zero Prefix if any may be new. The receiver must
// call Add with the flows stale now.
func (f *Flusher) Local() <-chan netip.Prefix { return f.local }

// Follow feeds Local until ctx ends, if Config.Conntrack is a Watcher.
func (f *Flusher) Follow(ctx context.Context) {
	w, ok := f.cfg.Conntrack.(Watcher)
	if !ok {
		return
	}
	added := func(p netip.Prefix) {
		select {
		case f.local <- p:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		if err := w.Watch(ctx, added); err != nil {
			f.cfg.Metrics.FlowErrors.Inc()
			f.cfg.Log.Error("cannot follow local addresses: UDP flows to NodePorts at new ones may stay untranslated", "error", err, "retry", retryDelay)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
			added(netip.Prefix{})
		}
	}
}

// Before saves the destinations that a commit is about to leave without a backend. Until After, all notes
// are kept. An error does not stop the commit.
func (f *Flusher) Before(deserted []conntrack.Stale) {
	if f.cfg.Conntrack == nil || len(deserted) == 0 {
		return
	}
	f.mu.Lock()
	f.committing = true
	f.mu.Unlock()
	f.noteFailed(f.add(deserted))
}

func (f *Flusher) noteFailed(err error) {
	if err != nil {
		f.cfg.NoteErrors.Inc()
		f.cfg.Log.Error("cannot note the flows to remove", "error", err)
	}
}

// Load takes the destinations saved by an earlier process. It must be called before Before, which saves all
// notes.
func (f *Flusher) Load(noted []conntrack.Stale) {
	if f.cfg.Conntrack == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noted = noted[:min(len(noted), maxNoted)]
}

// Resume removes the flows to noted destinations, unless in live: the earlier process died before its commit.
func (f *Flusher) Resume(live func() []conntrack.Destination) {
	f.mu.Lock()
	none := len(f.noted) == 0
	f.mu.Unlock()
	if none {
		return
	}
	now := live()
	f.mu.Lock()
	f.recall(now)
	f.mu.Unlock()
	f.task.Wake(0)
}

// After receives the stale flows of a commit and its event, or nil. The event is published with the number
// of removed flows; of several commits in one pass, only the last has the number.
func (f *Flusher) After(stale []conntrack.Stale, e *weftv1.WatchResponse) {
	f.mu.Lock()
	f.committing = false
	late := len(f.events) > 0 || f.busy
	if f.cfg.Conntrack == nil || len(stale) == 0 && (e == nil || !late) {
		f.mu.Unlock()
		if e != nil {
			f.cfg.Publish(e)
		}
		return
	}
	if len(f.events) >= maxEvents {
		// The pass takes too long: publish the oldest event without the number.
		f.cfg.Publish(f.events[0])
		f.events = f.events[1:]
	}
	if e != nil {
		f.events = append(f.events, e)
	}
	f.queue(stale)
	f.mu.Unlock()
	f.task.Wake(0)
}

// Add receives flows that are stale without a commit.
func (f *Flusher) Add(stale []conntrack.Stale) {
	if f.cfg.Conntrack == nil || len(stale) == 0 {
		return
	}
	f.mu.Lock()
	f.queue(stale)
	f.mu.Unlock()
	f.task.Wake(0)
}

// The lock is held.
func (f *Flusher) queue(stale []conntrack.Stale) {
	f.stale = append(f.stale, stale...)
	if len(f.stale) > maxStale {
		f.stale, f.incomplete = nil, true
		f.Ask()
	}
}

// Reconcile compares all flows with live, the present destinations and backends.
func (f *Flusher) Reconcile(live []conntrack.Destination) {
	if f.cfg.Conntrack == nil {
		return
	}
	f.mu.Lock()
	f.live, f.all, f.incomplete = live, true, false
	// A removal may have failed, or been replaced by this comparison.
	f.recall(live)
	f.mu.Unlock()
	f.task.Wake(0)
}

// Ask makes Overdue deliver a value.
func (f *Flusher) Ask() {
	select {
	case f.overdue <- struct{}{}:
	default:
	}
}

// Run removes flows until ctx ends, and then for at most Config.Drain.
func (f *Flusher) Run(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	context.AfterFunc(ctx, func() { time.AfterFunc(f.cfg.Drain, cancel) })
	f.task.Run(ctx, work)
	f.task.Call(work)
}

func (f *Flusher) pass(ctx context.Context) error {
	f.mu.Lock()
	stale, live, all, events := f.stale, f.live, f.all, f.events
	f.stale, f.live, f.all, f.events = nil, nil, false, nil
	f.busy = true
	noted := len(f.noted)
	if f.committing || f.incomplete {
		noted = 0
	}
	if f.incomplete {
		f.Ask()
	}
	f.mu.Unlock()
	var (
		deleted int
		err     error
	)
	if len(stale) > 0 {
		deleted, err = f.cfg.Conntrack.Flush(ctx, stale)
	}
	if deleted > 0 {
		f.followAnswers(stale)
	}
	if all && err == nil {
		var n int
		if n, err = f.cfg.Conntrack.Reconcile(ctx, live); n > 0 {
			f.followAnswers(firsts(live))
		}
		deleted += n
	}
	f.cfg.Metrics.Flows.Add(float64(deleted))
	if deleted > 0 {
		f.cfg.Log.Info("removed stale UDP flows", "flows", deleted)
	}
	if n := len(events); n > 0 {
		events[n-1].GetCommit().Flows = uint64(deleted) //nolint:gosec // a count
	}
	f.mu.Lock()
	for _, e := range events {
		f.cfg.Publish(e)
	}
	f.busy = false
	f.incomplete = f.incomplete || err != nil
	f.mu.Unlock()
	if err == nil {
		f.noteFailed(f.strike(noted))
	}
	return err
}

// followAnswers schedules a removal of flows started by late answers. It repeats until a removal finds no
// flows.
func (f *Flusher) followAnswers(removed []conntrack.Stale) {
	var answered []conntrack.Stale
	for _, c := range removed {
		if c.First {
			answered = append(answered, conntrack.Stale{Addr: c.Addr, Port: c.Port, At: c.At, First: true, Answered: true})
		}
	}
	if len(answered) > 0 {
		time.AfterFunc(answerDelay, func() { f.Add(answered) })
	}
}

// firsts returns the changes that make untranslated flows to destinations stale.
func firsts(live []conntrack.Destination) []conntrack.Stale {
	all := make([]conntrack.Stale, 0, len(live))
	for _, d := range live {
		all = append(all, conntrack.Stale{Addr: d.Addr, Port: d.Port, At: d.At, First: true})
	}
	return all
}
