package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

const (
	// sweepDelay is how long nothing must have been published before chains
	// without a use are removed.
	sweepDelay = time.Second
	// minRetry and maxRetry bound the time until a refused Service is tried
	// again; for a failed update the upper bound is Config.SyncPeriod.
	minRetry = time.Second
	maxRetry = 5 * time.Minute
	// dialRetry is the time between two attempts to find an aggregator.
	dialRetry = 500 * time.Millisecond
)

// publisher is the state of the publishing goroutine.
type publisher struct {
	*Frontend
	client  *client.Client
	session *client.Session
	// whole asks for a snapshot in place of patches: the first time, and
	// after an update whose outcome is not known.
	whole bool
	// retry is when whole is due; retryDelay grows with each failure.
	retry      time.Time
	retryDelay time.Duration
	// last is when the last update was answered.
	last time.Time
	// refused are the rejections that updates were answered with since the
	// last step began.
	refused []*client.RejectedError
	holds   map[model.Key]*hold
	// out is what no commit has yet, locals what has no endpoints on this node.
	out    outstanding
	locals localBooks
	// acked is when the last commit of this step was acknowledged.
	acked time.Time
	// asides are the families that are refused as a whole, with the time when each
	// is tried again; asideDelay grows with each refusal.
	asides     map[model.Family]time.Time
	asideDelay time.Duration
}

// publish is the publishing goroutine.
func (f *Frontend) publish(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-f.synced:
	}
	c, err := f.dial(ctx)
	if err != nil {
		return nil
	}
	defer c.Close()
	if !f.restore(ctx, c) {
		return nil
	}
	s := c.Session(client.SessionConfig{Snapshot: f.snapshot, OnSync: f.onSync})
	defer s.Close()
	return newPublisher(f, c, s).loop(ctx)
}

// newPublisher returns a publisher that starts with a snapshot.
func newPublisher(f *Frontend, c *client.Client, s *client.Session) *publisher {
	return &publisher{
		Frontend: f, client: c, session: s, whole: true, holds: make(map[model.Key]*hold),
		asides: make(map[model.Family]time.Time),
		out:    outstanding{services: make(map[model.Key]*model.Service)},
		locals: localBooks{of: make(map[model.Key]missing)},
	}
}

// dial waits for an aggregator; it fails only when ctx ends.
func (f *Frontend) dial(ctx context.Context) (*client.Client, error) {
	told := ""
	for {
		c, err := client.Dial(ctx, client.Config{Socket: f.cfg.Socket, Publisher: Publisher, Logger: f.log})
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if told != err.Error() {
			told = err.Error()
			f.log.Warn("no aggregator yet: waiting for it", "error", err)
		}
		if !pause(ctx, dialRetry) {
			return nil, ctx.Err()
		}
	}
}

// restore takes over the slots of the fragment that an earlier run left, so that
// the first update changes nothing that is right. It reports false when ctx ends.
func (f *Frontend) restore(ctx context.Context, c *client.Client) bool {
	for {
		resp, err := c.Get(ctx, "", render.Fragment)
		switch {
		case err == nil:
			f.renderMu.Lock()
			f.renderer.Restore(resp.GetFragment())
			f.renderMu.Unlock()
			return true
		case errors.Is(err, client.ErrUnavailable):
			if !pause(ctx, dialRetry) {
				return false
			}
		case ctx.Err() != nil:
			return false
		default:
			if !errors.Is(err, client.ErrNotFound) {
				f.log.Warn("the earlier fragment can not be read: endpoints may change places", "error", err)
			}
			return true
		}
	}
}

// onSync hears of resyncs after a lost connection.
func (f *Frontend) onSync(_ string, revision uint64, err error) {
	if err == nil {
		f.acknowledged(revision)
		return
	}
	f.statusMu.Lock()
	f.resync = err
	f.statusMu.Unlock()
	f.wake()
}

// takeResync returns the error of a resync, once.
func (f *Frontend) takeResync() error {
	f.statusMu.Lock()
	defer f.statusMu.Unlock()
	err := f.resync
	f.resync = nil
	return err
}

func (f *Frontend) acknowledged(revision uint64) {
	f.statusMu.Lock()
	f.status.Revision, f.status.Acknowledged = revision, time.Now()
	f.statusMu.Unlock()
	f.metrics.revision.Set(float64(revision))
}

// published notes that there has been a commit of everything that was known.
func (f *Frontend) published() {
	f.statusMu.Lock()
	defer f.statusMu.Unlock()
	f.status.Published = true
}

// loop publishes until ctx ends.
func (p *publisher) loop(ctx context.Context) error {
	for {
		if err := p.step(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("publish services: %w", err)
		}
		if !p.wait(ctx) {
			return nil
		}
	}
}

// wait returns true when there may be something to do.
func (p *publisher) wait(ctx context.Context) bool {
	var timer <-chan time.Time
	if due := p.due(); !due.IsZero() {
		t := time.NewTimer(time.Until(due))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-timer:
	case <-p.nudge:
	}
	return pause(ctx, time.Until(p.last.Add(p.cfg.MinSyncPeriod)))
}

// due returns when there is something to do without an event, zero if never.
func (p *publisher) due() time.Time {
	var at time.Time
	soonest := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if p.whole {
		soonest(p.retry)
	}
	for _, h := range p.holds {
		soonest(h.until)
	}
	for _, until := range p.asides {
		soonest(until)
	}
	p.renderMu.Lock()
	idle := p.renderer.Idle()
	p.renderMu.Unlock()
	if idle && !p.whole {
		soonest(p.last.Add(sweepDelay))
	}
	return at
}

// step publishes what there is. An error ends the frontend.
func (p *publisher) step(ctx context.Context) error {
	if err := p.takeResync(); err != nil && !p.known(err) {
		if takenOver(err) {
			return errTakenOver(err)
		}
		p.log.Warn("the aggregator refused the resync: sending the fragment again", "error", err.Error())
		p.whole, p.retry = true, time.Time{}
		p.queue.fail()
	}
	p.refused, p.acked = nil, time.Time{}
	changes := p.refresh()
	p.out.triggered(&changes)
	var again []model.Key
	changes.Services, again = p.sift(changes.Services)
	if !changes.Empty() || p.whole && !time.Now().Before(p.retry) {
		if err := p.offer(ctx, changes); err != nil {
			return err
		}
	}
	p.settled()
	for _, key := range append(again, p.expired(time.Now())...) {
		if err := p.readmit(ctx, key); err != nil {
			return err
		}
	}
	if err := p.readmitFamily(ctx, time.Now()); err != nil {
		return err
	}
	return p.sweep(ctx)
}

// known reports whether the outcome of a resync was also the answer to an update
// that had to wait for it.
func (p *publisher) known(err error) bool {
	var rejected *client.RejectedError
	return errors.As(err, &rejected) && slices.Contains(p.refused, rejected)
}

// sweep removes chains without a use, once nothing was published for a while.
func (p *publisher) sweep(ctx context.Context) error {
	if p.whole || time.Since(p.last) < sweepDelay {
		return nil
	}
	p.renderMu.Lock()
	patch := p.renderer.Sweep()
	p.renderMu.Unlock()
	if patch == nil {
		return nil
	}
	if _, err := p.answer(ctx, p.session.StartPatch(patch), 0, render.Update{Patch: patch}); err != nil {
		p.metrics.proxy.notSwept()
		return p.failed(ctx, err)
	}
	return nil
}

// send renders changes and waits for their acknowledgement.
//
// Possible errors: those of client.Session.Put.
func (p *publisher) send(ctx context.Context, c model.Changes) error {
	var u render.Update
	began := time.Now()
	p.out.add(&c)
	if p.whole {
		p.load(c)
	} else if u = p.render(c); u.Empty() {
		p.carried()
		return nil
	}
	var pending *client.Pending
	if p.whole || u.Whole {
		pending = p.session.StartPut(p.snapshot(render.Fragment))
	} else {
		pending = p.session.StartPatch(u.Patch)
	}
	ok, err := p.answer(ctx, pending, len(c.Services), u)
	p.metrics.proxy.updated(p.whole || u.Whole, time.Since(began), p.cfg.Now(), err)
	if ok {
		p.whole, p.retryDelay = false, 0
		p.carried()
	} else if u.Whole {
		p.whole = true
	}
	return err
}

// answer waits for an acknowledgement and keeps the books.
func (p *publisher) answer(ctx context.Context, pending *client.Pending, services int, u render.Update) (bool, error) {
	began := time.Now()
	revision, err := pending.Wait(ctx)
	p.last = time.Now()
	took := p.last.Sub(began)
	var rejected *client.RejectedError
	switch {
	case err == nil:
		p.metrics.publishes.WithLabelValues(resultCommitted).Inc()
		p.metrics.duration.Observe(took.Seconds())
		p.acknowledged(revision)
		p.acked = p.cfg.Now()
		p.published()
		p.log.Info("published", "revision", revision, "services", services, "snapshot", u.Patch == nil,
			"elements_added", u.Added, "elements_removed", u.Removed, "duration", took)
		return true, nil
	case errors.As(err, &rejected):
		p.refused = append(p.refused, rejected)
		p.metrics.publishes.WithLabelValues(resultRejected).Inc()
	default:
		p.metrics.publishes.WithLabelValues(resultFailed).Inc()
	}
	return false, err
}

// failed notes that an update did not get through for no fault of a Service:
// the whole fragment is sent again, later. It returns an error if that is in
// vain.
func (p *publisher) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if takenOver(err) {
		return errTakenOver(err)
	}
	p.retryDelay = min(max(minRetry, 2*p.retryDelay), max(minRetry, p.cfg.SyncPeriod))
	p.queue.fail()
	p.whole, p.retry = true, time.Now().Add(p.retryDelay)
	p.log.Error("the fragment could not be published: trying again", "error", err.Error(), "after", p.retryDelay)
	return nil
}

// takenOver reports whether another stream of this publisher has the fragment.
func takenOver(err error) bool {
	var rejected *client.RejectedError
	return errors.As(err, &rejected) && rejected.Has(weftv1.Reason_REASON_TAKEN_OVER)
}

func errTakenOver(err error) error {
	return fmt.Errorf("another process publishes the services of this node, run only one: %w", err)
}

// pause waits; it returns false when ctx ends.
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
