package publish

import (
	"context"
	"errors"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

const (
	minRetry     = time.Second
	cleanupDelay = time.Second
	// maxRounds bounds the resends without named items. A bisection follows, because it commits the good items.
	maxRounds = 4
)

// loop is the state machine of a Publisher, on Run's goroutine.
type loop[K comparable, V any] struct {
	*Publisher[K, V]
	client  *client.Client
	session *client.Session
	// nil if not implemented
	parts     Parts[V]
	cleaner   Cleaner
	staged    Staged[K]
	divisible Divisible[K, V]
	// The next update is a snapshot: at first, and after an unknown outcome.
	snapshot bool
	// earliest time of this snapshot; retryDelay grows with failures
	retry      time.Time
	retryDelay time.Duration
	// time of the last answer, and of this step's commit
	last, committed time.Time
	// of this step
	rejections []*client.RejectedError
	// pending is not rendered; uncommitted is rendered but not in force.
	pending, uncommitted changeSet[K, V]
	quarantine           map[K]*quarantined[V]
	// rendered as committed although another value is wanted
	held    map[K]struct{}
	leftOut map[K]error
	// size in force
	total int
	// retry times of frozen parts; freezeDelay grows with rejections
	frozen      map[string]time.Time
	freezeDelay time.Duration
	// committed without a frozen part
	partial map[K]struct{}
}

func newLoop[K comparable, V any](p *Publisher[K, V], c *client.Client, s *client.Session) *loop[K, V] {
	l := &loop[K, V]{Publisher: p, client: c, session: s, snapshot: true, quarantine: make(map[K]*quarantined[V]), held: make(map[K]struct{}), partial: make(map[K]struct{}), frozen: make(map[string]time.Time)}
	l.parts, _ = p.cfg.Renderer.(Parts[V])
	l.cleaner, _ = p.cfg.Renderer.(Cleaner)
	l.staged, _ = p.cfg.Renderer.(Staged[K])
	l.divisible, _ = p.cfg.Renderer.(Divisible[K, V])
	return l
}

func (l *loop[K, V]) step(ctx context.Context) error {
	if err := l.checkResync(); err != nil {
		return err
	}
	l.rejections, l.committed = nil, time.Time{}
	items, other := l.cfg.Renderer.Refresh()
	l.collect(items)
	if l.waiting() {
		return nil
	}
	if changes := l.portion(); l.snapshot || other || len(changes) > 0 || l.moreStages() {
		if err := l.publish(ctx, changes); err != nil {
			return err
		}
	}
	if l.more() {
		return nil
	}
	l.checkAnswered()
	if err := l.readmit(ctx); err != nil {
		return err
	}
	if err := l.thaw(ctx); err != nil {
		return err
	}
	return l.cleanup(ctx)
}

func (l *loop[K, V]) waiting() bool { return l.snapshot && time.Now().Before(l.retry) }

func (l *loop[K, V]) moreStages() bool { return l.staged != nil && l.staged.Pending() }

func (l *loop[K, V]) more() bool { return l.moreStages() || len(l.pending.items) > 0 }

func (l *loop[K, V]) portion() []Change[K, V] {
	most := l.cfg.Portion
	if l.snapshot || most == 0 {
		return l.pending.take(l.cfg.Compare)
	}
	return l.pending.takeSome(l.cfg.Compare, func(all []Change[K, V]) (now, later []Change[K, V]) {
		if l.divisible != nil {
			return l.divisible.Divide(all, most)
		}
		return smallest(all, most, func(c *Change[K, V]) int { return 1 + l.size(c.Old) + l.size(c.New) })
	})
}

func (l *loop[K, V]) checkAnswered() {
	if l.snapshot {
		return
	}
	if len(l.frozen) == 0 {
		l.setFrozen(nil)
	}
	if since := l.cfg.Backlog.commit(); !since.IsZero() {
		l.cfg.Observer.Answered(since, l.committed)
	}
}

// checkResync handles the error of a session's own resync, unless an update has returned it.
func (l *loop[K, V]) checkResync() error {
	l.mu.Lock()
	err := l.resync
	l.resync = nil
	l.mu.Unlock()
	var rejected *client.RejectedError
	if err == nil || errors.As(err, &rejected) && slices.Contains(l.rejections, rejected) {
		return nil
	}
	if taken := takenOver(err); taken != nil {
		return taken
	}
	if !l.waiting() {
		l.log.Warn("the aggregator rejected the resync: sending the fragment again", "error", err.Error())
		l.snapshot, l.retry = true, time.Time{}
	}
	l.cfg.Backlog.fail()
	return nil
}

func (l *loop[K, V]) cleanup(ctx context.Context) error {
	if l.cleaner == nil || l.snapshot || time.Since(l.last) < cleanupDelay {
		return nil
	}
	patch := l.cleaner.Cleanup()
	if patch == nil {
		return nil
	}
	sent := Sent{Cleanup: true}
	if err := l.answer(ctx, l.session.StartPatch(patch), &sent, 0, &Update{Patch: patch}); err != nil {
		return l.fail(ctx, err)
	}
	return nil
}

// publish sends changes, and handles rejections. Its error ends Run.
func (l *loop[K, V]) publish(ctx context.Context, changes []Change[K, V]) error {
	repeated := false
	err := l.send(ctx, changes)
	for rounds := 0; err != nil; rounds++ {
		rejected := rejection(err)
		if rejected == nil {
			return l.fail(ctx, err)
		}
		part, wide := l.partOf(rejected)
		if !wide && rounds < maxRounds {
			if out := l.exclude(l.owners(rejected), rejected); len(out) > 0 {
				// Terminates: each round excludes a new item.
				repeated = false
				err = l.send(ctx, out)
				continue
			}
		}
		switch {
		case !repeated && !limited(rejected):
			// The cause may be a passing kernel condition.
			repeated, l.snapshot = true, true
			if err = l.send(ctx, nil); err == nil {
				l.log.Warn("an update was rejected, and accepted when it was repeated", "detail", rejected.Detail())
			}
		case wide:
			repeated = false
			l.freeze(ctx, part, rejected)
			err = l.send(ctx, nil)
		default:
			return l.bisect(ctx, rejected)
		}
	}
	return nil
}

// send returns the errors of client.Session.Put.
func (l *loop[K, V]) send(ctx context.Context, changes []Change[K, V]) error {
	began := time.Now()
	l.uncommitted.add(changes)
	u := l.render(changes, !l.snapshot)
	if !l.snapshot && u.Empty() {
		l.setCommitted()
		return nil
	}
	sent := Sent{Snapshot: l.snapshot || u.Snapshot}
	var pending *client.Pending
	if sent.Snapshot {
		pending = l.session.StartPut(l.cfg.Renderer.Snapshot())
	} else {
		pending = l.session.StartPatch(u.Patch)
	}
	sent.Total = time.Since(began)
	err := l.answer(ctx, pending, &sent, len(changes), &u)
	if err != nil {
		l.snapshot = l.snapshot || u.Snapshot
		return err
	}
	l.snapshot, l.retryDelay = false, 0
	l.setCommitted()
	return nil
}

func (l *loop[K, V]) answer(ctx context.Context, pending *client.Pending, sent *Sent, items int, u *Update) error {
	began := time.Now()
	sent.Revision, sent.Err = pending.Wait(ctx)
	l.last = time.Now()
	sent.Wait = l.last.Sub(began)
	sent.Total += sent.Wait
	var rejected *client.RejectedError
	switch {
	case sent.Err == nil:
		l.committed = l.cfg.Now()
		l.acknowledge(sent.Revision, true)
		l.log.Debug("published", "revision", sent.Revision, "items", items, "snapshot", sent.Snapshot,
			"elements_added", u.Added, "elements_removed", u.Removed, "duration", sent.Wait)
	case errors.As(sent.Err, &rejected):
		l.rejections = append(l.rejections, rejected)
	}
	l.failed(sent.Err)
	l.cfg.Observer.Sent(*sent)
	return sent.Err
}

// fail schedules a snapshot. It returns an error if a retry is useless.
func (l *loop[K, V]) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if taken := takenOver(err); taken != nil {
		return taken
	}
	l.retryDelay = min(max(minRetry, 2*l.retryDelay), max(minRetry, l.cfg.MaxRetry))
	l.cfg.Backlog.fail()
	l.snapshot, l.retry = true, time.Now().Add(l.retryDelay)
	l.log.Error("cannot publish the fragment", "error", err.Error(), "retry", l.retryDelay)
	return nil
}

// rejection returns nil for rejections unrelated to single items.
func rejection(err error) *client.RejectedError {
	rejected, ok := errors.AsType[*client.RejectedError](err)
	if !ok || rejected.Has(weftv1.Violation_REASON_TAKEN_OVER) || rejected.Has(weftv1.Violation_REASON_PERMISSION) {
		return nil
	}
	return rejected
}

// wait returns when the next step is due, or false when ctx ends.
func (l *loop[K, V]) wait(ctx context.Context) bool {
	if l.more() && !l.waiting() {
		return ctx.Err() == nil
	}
	var timer <-chan time.Time
	if due := l.due(); !due.IsZero() {
		t := time.NewTimer(time.Until(due))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-timer:
	case <-l.nudge:
	}
	return pause(ctx, time.Until(l.last.Add(l.cfg.MinInterval)))
}

// due returns the time of a step without a Wake; zero for never.
func (l *loop[K, V]) due() time.Time {
	if l.snapshot {
		// A zero retry means now; the zero time means never.
		if l.retry.After(l.last) {
			return l.retry
		}
		return l.last
	}
	var due time.Time
	for _, q := range l.quarantine {
		due = soonest(due, q.until)
	}
	for _, until := range l.frozen {
		due = soonest(due, until)
	}
	if l.cleaner != nil && l.cleaner.Idle() {
		due = soonest(due, l.last.Add(cleanupDelay))
	}
	return due
}

// soonest takes a zero a for never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// pause returns false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
