package aggregator

import (
	"errors"

	"github.com/weft-proxy/weft/aggregator/admission"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// applyUpdate applies an update to the state, within the limits of its publisher. If
// a fragment changed a declaration while the update was waiting, the update is
// compiled again; that is rare enough to do it on the writer's goroutine.
//
// Possible errors: *RejectedError.
func (w *writer) applyUpdate(s *submission) error {
	err := w.applyWithin(s)
	if errors.Is(err, desired.ErrStale) && s.admitted != nil {
		var u *desired.Update
		if u, err = s.admitted.Recompile(s.update, w.state.Scope()); err != nil {
			return err
		}
		s.update = u
		if err = w.applyWithin(s); errors.Is(err, desired.ErrStale) {
			return snapshotNeeded(s.key())
		}
	}
	if err == nil {
		return nil
	}
	var r *desired.Rejection
	if errors.As(err, &r) {
		return rejection(r)
	}
	return err
}

func (w *writer) applyWithin(s *submission) error {
	p := w.cfg.Access.Publisher(s.key().Publisher)
	switch {
	case p == nil || s.withdraws():
		return w.state.Apply(s.update)
	case s.stored:
		return w.state.ApplyWithin(s.update, admission.OverRights(p, s.key()), nil)
	}
	grant, limit := w.grant, admission.OverLimit(p, s.key())
	if p.Admin {
		grant = nil
	}
	if s.returns {
		limit = admission.OverRights(p, s.key())
	}
	return w.state.ApplyWithin(s.update, func(before, after desired.Usage, effect desired.Effect) error {
		kept := w.unconfirmed.Kept(s.key().Publisher)
		before.Bytes, after.Bytes = before.Bytes+kept, after.Bytes+kept
		return limit(before, after, effect)
	}, grant)
}

// errNoGrant means that the configuration does not name a publisher, so that it has no
// grants: it owns what it declares.
var errNoGrant = errors.New("the publisher has no grants")

// granted is a desired.Grant.
func (a *Aggregator) granted(publisher, owner string, at desired.Place) error {
	p := a.cfg.Access.Publisher(publisher)
	if p == nil {
		return errNoGrant
	}
	if r := p.Shared(at.Table, at.Kind, at.Name, owner); r != nil {
		return r
	}
	return nil
}

// limited reports whether the configuration limits what a publisher holds, so that others
// are protected from it.
func (a *Aggregator) limited(publisher string) bool {
	return a.cfg.Access.Publisher(publisher).Limited()
}
