package aggregator

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/statedir"
)

// conclude answers committed updates: at once, or if the fragment is or was
// durable, once the change is stored.
func (w *writer) conclude(accepted []*submission, r Result) {
	for _, s := range accepted {
		if !s.durable || s.stored {
			s.answer(r)
			continue
		}
		c := changeOf(s, w.cfg.Access.Publisher(s.key().Publisher) != nil, w.cfg.Now())
		c.Done = func(err error) { w.stored(s, r, err) }
		w.dir.Store(c)
	}
}

// stored answers a committed update of a durable fragment, which could not be stored if err is
// not nil. Any goroutine may call it.
func (a *Aggregator) stored(s *submission, r Result, err error) {
	if err != nil {
		rejected := admission.Reject(s.key(), weftv1.Violation_REASON_LIMIT, nil,
			"committed as revision %d and in force, but not stored: %v: weft tries again until it is stored", r.Revision, err)
		a.report(rejected)
		r.Err = rejected
	}
	s.answer(r)
}

// changeOf returns what an update that was committed now changes in the state directory. Updates
// are immutable, so that the messages are made when they are stored.
func changeOf(s *submission, configured bool, now time.Time) statedir.Change {
	c, u := statedir.Change{Fragment: s.key(), Configured: configured}, s.update
	switch {
	case u.Snapshot && (s.withdraws() || u.Lifetime != desired.LifetimeDurable):
		// It is removed.
	case u.Snapshot:
		c.Snapshot = func() *weftv1.Fragment {
			return message.Fragment(message.Head(u.Fragment.Name, u.Priority, weftv1.Lifetime_LIFETIME_DURABLE, message.ExpireTime(u.Expires)), u.Tables, now)
		}
	default:
		c.Patch = func() *weftv1.Patch { return message.Patch(u, now) }
	}
	return c
}

// storable returns the rejection of a patch of a durable fragment while committed
// content is not stored; nil if there is none. Snapshots are admitted only if
// there is room for them.
func (w *writer) storable(s *submission, f desired.Status) error {
	if s.update.Snapshot || f.Lifetime != desired.LifetimeDurable {
		return nil
	}
	if err := w.dir.Failing(); err != nil {
		return admission.Reject(s.key(), weftv1.Violation_REASON_LIMIT, nil, "%s", admission.NoRoom(err))
	}
	return nil
}

// restore commits the durable fragments of the state directory, in one commit.
// One that has expired is removed. One that is refused is tried again after others,
// which may declare what it refers to. One that the configuration does not allow is
// orphaned.
func (w *writer) restore(stored []statedir.Fragment) error {
	began := w.cfg.Now()
	// The state directory may need the list again, to create its database.
	stored = slices.DeleteFunc(slices.Clone(stored), func(f statedir.Fragment) bool {
		at := f.Content.GetExpireTime()
		if at == nil || at.AsTime().After(began) {
			return false
		}
		w.log.Info("durable fragment has expired", "fragment", f.Key.String(), "expire_time", at.AsTime())
		w.dir.Store(statedir.Change{Fragment: f.Key})
		return true
	})
	refusals := make(map[desired.Key]error)
	orphans, denied := w.withoutPublisher(stored), make(map[desired.Key]*weftv1.FragmentStatus)
	batch := w.withdrawOrphans(orphans)
	stored = slices.DeleteFunc(stored, func(f statedir.Fragment) bool { return orphans[f.Key] != nil })
	for before := -1; len(stored) != before; {
		scope := w.state.Scope()
		before = len(stored)
		stored = slices.DeleteFunc(stored, func(f statedir.Fragment) bool {
			s, err := w.applyStored(f, scope, began)
			if err == nil {
				batch = append(batch, s)
			}
			refusals[f.Key] = err
			return err == nil
		})
	}
	for _, f := range stored {
		if rejected := (*RejectedError)(nil); errors.As(refusals[f.Key], &rejected) && len(rejected.Refusals) > 0 {
			denied[f.Key] = orphan(f, rejected.Violations)
			continue
		}
		w.log.Error("durable fragment is refused", "fragment", f.Key.String(), "error", refusals[f.Key])
	}
	batch = append(batch, w.withdrawOrphans(denied)...)
	maps.Copy(orphans, denied)
	groups, err := w.commitApplied(batch, began)
	if err != nil {
		return err
	}
	if _, err := w.commitGroups(groups); err != nil {
		return err
	}
	for _, s := range batch {
		if r := <-s.result; r.Err != nil {
			w.log.Error("durable fragment is refused", "fragment", s.key().String(), "error", r.Err)
		}
	}
	w.statuses.Orphaned(orphans)
	return nil
}

// applyStored compiles a durable fragment and applies it to the state.
func (w *writer) applyStored(f statedir.Fragment, scope admission.Scope, now time.Time) (*submission, error) {
	if err := admission.CheckKey(f.Key); err != nil {
		return nil, err
	}
	adm := admission.NewSnapshot(admission.Config{Access: w.cfg.Access, Stored: true, Durable: true, Now: func() time.Time { return now }}, f.Key, scope)
	adm.AddFragment(f.Content)
	u, err := adm.Finish()
	if err != nil {
		return nil, err
	}
	s := &submission{update: u, admitted: adm, stored: true, result: make(chan Result, 1)}
	if len(w.apply([]*submission{s})) == 0 {
		return nil, (<-s.result).Err
	}
	return s, nil
}
