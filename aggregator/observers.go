package aggregator

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/events"
	"github.com/weft-proxy/weft/aggregator/findings"
	"github.com/weft-proxy/weft/aggregator/flows"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/status"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/lint"
)

// observers tell readers about outcomes, on the writer's goroutine. Any goroutine may call report.
type observers struct {
	log       *slog.Logger
	now       func() time.Time
	metrics   *metrics
	statuses  *status.Fragments
	roster    *status.Publishers
	hub       *events.Hub
	history   *history.Recorder
	flows     *flows.Flusher
	inspector *findings.Inspector
	scope     *atomic.Pointer[merge.Scope]
	refusals  *access.Repeats
	// counted is the work already in the metrics.
	counted desired.Work
	// logged is the time of the last commit with a log line, unlogged the number of commits since.
	logged   time.Time
	unlogged int
}

func newObservers(a *Aggregator) *observers {
	return &observers{
		log: a.log, now: a.cfg.Now, metrics: a.metrics, statuses: a.statuses, roster: a.roster, hub: a.hub, history: a.history,
		flows: a.flows, inspector: a.inspector, scope: &a.scope,
		refusals: access.NewRepeats(func(publisher, reason string, withheld int) {
			a.log.Info("more updates rejected", "publisher", publisher, "reason", reason, "not_logged", withheld)
		}),
	}
}

type outcome struct {
	state    *merge.State
	revision uint64
	accepted []*submission
	plan     *desired.Plan
	// counts is nil without a commit.
	counts *weftv1.Counts
	stats  kernel.Stats
	timing timing
}

type timing struct {
	// wait is the queueing time of the oldest update.
	wait time.Duration
	// build covers the merge, the plan and a stored record.
	build, kernel time.Duration
}

func measure(accepted []*submission, began, built, now time.Time) timing {
	t := timing{build: built.Sub(began), kernel: now.Sub(built)}
	for _, s := range accepted {
		// The aggregator's own updates were in no queue.
		if !s.queued.IsZero() {
			t.wait = max(t.wait, began.Sub(s.queued))
		}
	}
	return t
}

// committed comes before the answers, so that a reader after the answer finds the commit.
func (o *observers) committed(c *outcome) {
	if c.counts != nil {
		o.metrics.committed(c.counts, c.revision, c.timing)
	}
	keys := make([]desired.Key, 0, len(c.accepted))
	for _, s := range c.accepted {
		keys = append(keys, s.key())
		if !s.stored && !s.leaving {
			o.roster.Committed(s.key().Publisher)
		}
		if !s.expired.IsZero() {
			o.log.Info("fragment expired", "fragment", s.key().String(), "expire_time", s.expired, "revision", c.revision)
			o.hub.Publish(&weftv1.WatchResponse{Event: &weftv1.WatchResponse_Expired{Expired: &weftv1.Expired{
				Fragment: message.Name(s.key()), ExpireTime: timestamppb.New(s.expired), Revision: c.revision,
			}}})
		}
	}
	o.statuses.Committed(keys, c.state, c.revision, o.now(), c.counts != nil)
	o.metrics.shadowed.Set(float64(c.state.Shadowed()))
	o.scope.Store(c.state.Scope())
	o.count(c.state)
	o.record(c)
}

func (o *observers) count(state *merge.State) {
	now := state.Work()
	o.metrics.worked(o.counted, now)
	o.counted = now
}

// report counts and publishes a rejection, and logs one line a minute per publisher and reason.
func (o *observers) report(r *RejectedError) {
	o.statuses.Rejected(r)
	o.roster.Rejected(r)
	publisher, reason := o.metrics.rejected(r)
	if skipped, ok := o.refusals.Log(publisher, reason, o.now()); ok {
		args := []any{"fragment", r.Fragment.String(), "violations", len(r.Violations), "error", r.Error()}
		if skipped > 0 {
			args = append(args, "not_logged", skipped)
		}
		o.log.Info("update rejected", args...)
	}
	o.hub.Publish(&weftv1.WatchResponse{Event: &weftv1.WatchResponse_Rejection{Rejection: &weftv1.Rejection{
		Fragment: message.Name(r.Fragment), Violations: r.Violations,
	}}})
}

// logInterval is the time between log lines about commits of elements only. A line costs a tenth of such a
// commit.
const logInterval = 10 * time.Second

// announce comes after the answers.
func (o *observers) announce(c *outcome) {
	plan := c.plan
	if structural(plan) {
		o.logged = time.Time{}
		o.inspector.Wake()
	}
	keys := make([]desired.Key, 0, len(c.accepted))
	for _, s := range c.accepted {
		keys = append(keys, s.key())
	}
	slices.SortFunc(keys, desired.Key.Compare)
	keys = slices.Compact(keys)
	if now := o.now(); now.Sub(o.logged) < logInterval {
		o.unlogged++
	} else {
		o.log.LogAttrs(context.Background(), slog.LevelInfo, "committed",
			slog.Uint64("revision", c.revision), slog.Int("fragments", len(keys)), slog.Int("updates", len(c.accepted)),
			slog.Int("ops", len(plan.Ops)), slog.Int("bytes", c.stats.Bytes),
			slog.Duration("wait", c.timing.wait), slog.Duration("build", c.timing.build), slog.Duration("kernel", c.timing.kernel),
			slog.Int("rules_added", plan.Counts.RulesAdded), slog.Int("rules_deleted", plan.Counts.RulesDeleted),
			slog.Int("elements_added", plan.Counts.ElementsAdded), slog.Int("elements_deleted", plan.Counts.ElementsDeleted),
			slog.Int("not_logged", o.unlogged))
		o.logged, o.unlogged = now, 0
	}
	var event *weftv1.WatchResponse
	if o.hub.Watched() {
		event = &weftv1.WatchResponse{Event: &weftv1.WatchResponse_Commit{Commit: &weftv1.Commit{
			Revision: c.revision, Fragments: message.Names(keys), Changes: c.counts,
			Wait: durationpb.New(c.timing.wait), Build: durationpb.New(c.timing.build), Kernel: durationpb.New(c.timing.kernel),
		}}}
	}
	o.flows.After(plan.Stale, event)
	if plan.Rerouted {
		o.flows.Ask()
	}
}

func structural(p *desired.Plan) bool {
	return slices.ContainsFunc(p.Ops, func(op kernel.Op) bool {
		switch op.(type) {
		case kernel.AddElements, kernel.DeleteElements, kernel.FlushSet:
			return false
		default:
			return true
		}
	})
}

// removed reports a commit that removed content without a fragment.
func (o *observers) removed(c *outcome) {
	o.statuses.Revision.Store(c.revision)
	o.metrics.committed(c.counts, c.revision, timing{})
	o.history.Record(&history.Commit{Revision: o.entry(c.revision, c.counts)})
	o.log.Info("removed content without a fragment", "revision", c.revision, "ops", len(c.plan.Ops))
	o.flows.After(c.plan.Stale, &weftv1.WatchResponse{Event: &weftv1.WatchResponse_Commit{Commit: &weftv1.Commit{Revision: c.revision, Changes: c.counts}}})
}

// lapsed reports a commit of elements that replace expired ones.
func (o *observers) lapsed(plan *desired.Plan, revision uint64) {
	o.statuses.Revision.Store(revision)
	o.metrics.revision.Set(float64(revision))
	o.metrics.changed(message.Counts(plan.Counts))
	o.flows.After(plan.Stale, nil)
}

// A nil counts means that tables were left out.
func (o *observers) repaired(state *merge.State, revision uint64, reason string, ops int, counts *weftv1.Counts) {
	o.statuses.Revision.Store(revision)
	o.metrics.repaired(counts, revision)
	o.history.Record(&history.Commit{Revision: o.entry(revision, counts)})
	o.log.Warn("repaired the kernel", "revision", revision, "reason", reason, "ops", ops)
	o.drift(&weftv1.Drift{Reason: reason, Repaired: counts})
	o.flows.Reconcile(planner.Live(state))
}

func (o *observers) drift(d *weftv1.Drift) {
	o.hub.Publish(&weftv1.WatchResponse{Event: &weftv1.WatchResponse_Drift{Drift: d}})
}

func (a *Aggregator) newInspector() *findings.Inspector {
	return findings.New(findings.Config{
		Foreign: a.cfg.ReadAll,
		Merged: func(ctx context.Context) (all []*desired.Merged, err error) {
			return all, a.ask(ctx, func(w *writer) { all = merged(w.state, desired.DetailElements) })
		},
		Needs:   a.cfg.Needs,
		Changed: a.findingChanged,
		Counted: a.metrics.found,
		Logger:  a.log,
	})
}

func merged(state *merge.State, detail desired.Detail) []*desired.Merged {
	all := desired.Reader{All: true}
	var out []*desired.Merged
	for _, t := range views.Tables(state, all) {
		if m, ok := views.Merged(state, t.Table, detail, all, nil); ok && m != nil {
			out = append(out, m)
		}
	}
	return out
}

func (a *Aggregator) findingChanged(f *lint.Finding, gone bool) {
	text := "found"
	if gone {
		text = "no longer found"
	}
	a.log.Info(text, "finding", string(f.ID), "text", f.Text, "remedy", f.Remedy, "rules", f.Rules(nil))
	// Both parties may read the event, but not each other's rules.
	a.hub.Publish(&weftv1.WatchResponse{Event: &weftv1.WatchResponse_Finding{Finding: &weftv1.FindingChange{Finding: findings.Message(f, ""), Gone: gone}}})
}
