package aggregator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/unconfirmed"
)

// ApplyUnconfirmed replaces a fragment like Apply and reverts it at the returned time unless Confirm comes
// before.
//
// Possible errors: those of Apply (after ErrStopped the next process reverts the update),
// unconfirmed.ErrDisabled, unconfirmed.ErrNotStored, ErrProtocol (the time).
func (a *Aggregator) ApplyUnconfirmed(ctx context.Context, publisher string, f *weftv1.Fragment, after time.Duration) (r Result, at time.Time, err error) {
	if after < unconfirmed.MinTime || after > unconfirmed.MaxTime {
		return r, at, fmt.Errorf("%w: confirm is %v: want %v to %v", ErrProtocol, after, unconfirmed.MinTime, unconfirmed.MaxTime)
	}
	s, err := a.admitSnapshot(ctx, a.admission, publisher, f)
	if err != nil {
		return r, at, err
	}
	key := s.key()
	if err := a.unconfirmed.Reserve(key); err != nil {
		return r, at, a.notChangeable(key, err)
	}
	before, err := a.earlier(ctx, key)
	if err == nil {
		at, err = a.unconfirmed.Begin(key, before, after)
		err = a.rejected(err)
	}
	if err == nil {
		// The outcome must be known: the writer drops the update if its sender is gone.
		s.reserved = true
		r, err = a.submit(context.WithoutCancel(ctx), s)
	}
	switch {
	case errors.Is(err, ErrStopped):
		// The update may be in force: the next process reverts it.
		return r, at, err
	case err != nil && r.Revision == 0:
		a.unconfirmed.Cancel(key)
		return r, at, err
	}
	// A durable fragment can be in force without being stored, which is an error too.
	a.unconfirmed.Committed(key)
	return r, at, err
}

// Confirm keeps or reverts an update waiting for a confirmation. It returns the last revision.
//
// Possible errors: *RejectedError (a revert is under way, or failed and will be retried),
// unconfirmed.ErrNone, unconfirmed.ErrNotStored, ErrInvalidName, ErrStandby, ErrStopped, ErrGone, ctx's.
func (a *Aggregator) Confirm(ctx context.Context, publisher, name string, revert bool) (revision uint64, err error) {
	key := desired.Key{Publisher: publisher, Name: name}
	if err := admission.CheckKey(key); err != nil {
		return 0, err
	}
	if err := a.admitting(ctx.Done()); err != nil {
		return 0, err
	}
	if revert {
		err = a.unconfirmed.Revert(ctx, key)
	} else {
		err = a.unconfirmed.Confirm(key)
	}
	return a.statuses.Revision.Load(), a.notChangeable(key, err)
}

func (a *Aggregator) notChangeable(key desired.Key, err error) error {
	if errors.Is(err, unconfirmed.ErrWaits) || errors.Is(err, unconfirmed.ErrReverting) {
		return a.rejected(admission.Reject(key, weftv1.Violation_REASON_UNCONFIRMED, nil, "%v", err))
	}
	return err
}

func (a *Aggregator) mayKeep(key desired.Key, kept, more int) error {
	p := a.cfg.Access.Publisher(key.Publisher)
	if p == nil {
		return nil
	}
	holds := a.statuses.Holds(key.Publisher).Bytes + kept
	if r := p.Holds(access.LimitBytes, holds, holds+more); r != nil {
		return admission.Reject(key, weftv1.Violation_REASON_LIMIT, nil, "the earlier content is kept until the update is confirmed: %v", r)
	}
	return nil
}

// takeBack restores a fragment's earlier content, or withdraws the fragment without such content, or with
// expired content. The publisher's rights apply, but not its limits.
func (a *Aggregator) takeBack(ctx context.Context, key desired.Key, before *weftv1.Fragment) error {
	if at := before.GetExpireTime(); before == nil || at != nil && !at.AsTime().After(a.cfg.Now()) {
		_, err := a.submit(ctx, &submission{update: &desired.Update{Fragment: key, Snapshot: true}, reserved: true})
		return err
	}
	cfg := a.admission
	cfg.Stored = true
	s, err := a.admitSnapshot(ctx, cfg, key.Publisher, before)
	if err != nil {
		return err
	}
	s.reserved, s.returns = true, true
	_, err = a.submit(ctx, s)
	return err
}

// earlier returns the present content for a later revert, or nil without a fragment.
func (a *Aggregator) earlier(ctx context.Context, key desired.Key) (*weftv1.Fragment, error) {
	var status *weftv1.FragmentStatus
	var tables []desired.TableUpdate
	if err := a.ask(ctx, func(w *writer) { status = w.tell.statuses.Get(key); tables, _ = views.Content(w.state, key) }); err != nil {
		return nil, err
	}
	refuse := func(format string, args ...any) error {
		return a.rejected(admission.Reject(key, weftv1.Violation_REASON_INVALID, nil, format, args...))
	}
	switch {
	case status == nil:
		return nil, nil
	case status.GetLifetime() == weftv1.Lifetime_LIFETIME_SESSION:
		return nil, refuse("it belongs to an open stream, which would send its own content again: end that first")
	case status.GetState() == weftv1.FragmentStatus_STATE_COMMITTED:
		return message.Fragment(message.Head(key.Name, status.GetPriority(), status.GetLifetime(), status.GetExpireTime()), tables, time.Time{}), nil
	case status.GetState() == weftv1.FragmentStatus_STATE_ADOPTED:
		// The history may have the unknown text of rules. Its last entries can be lost: use it only if it
		// equals the kernel's content.
		c, err := a.history.Content(ctx, key)
		if err != nil && !errors.Is(err, history.ErrDisabled) && !errors.Is(err, history.ErrUnavailable) {
			return nil, err
		}
		if c.Fragment != nil && a.isInForce(ctx, key, c.Fragment) {
			return c.Fragment, nil
		}
	}
	return nil, refuse("what it has now is from before a restart of weft, and its text is not known: apply it once without a confirmation")
}

func (a *Aggregator) isInForce(ctx context.Context, key desired.Key, f *weftv1.Fragment) bool {
	p := a.newPlanning(key.Publisher, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{f}})
	for _, s := range p.steps {
		s.reserved = true
	}
	var failed error
	if err := a.ask(ctx, func(w *writer) { failed = w.plan(p) }); err != nil || failed != nil {
		return false
	}
	for part := range p.outcome().Parts(message.PartBytes) {
		if len(part.GetChanges())+len(part.GetRejections()) > 0 {
			return false
		}
	}
	return true
}
