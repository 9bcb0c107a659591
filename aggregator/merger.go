package aggregator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/status"
	"github.com/weft-proxy/weft/aggregator/unconfirmed"
)

// merger checks updates and applies them to the state, on the writer's goroutine.
type merger struct {
	access      *access.Control
	state       *merge.State
	dir         *statedir.Dir
	statuses    *status.Fragments
	unconfirmed *unconfirmed.Keeper
	lifetimes   *lifetimes
}

// check gets the fragment as f if ok is true, and updates the session. done means no change.
func (m *merger) check(s *submission, f desired.Status, ok bool) (done bool, err error) {
	if c := s.session; c != nil && !s.leaving {
		if !c.ended {
			m.lifetimes.sessions[c.id] = c
		}
		if s.update.Snapshot {
			delete(c.expired, s.key().Name)
		}
		if s.withdraws() {
			// Patches need a snapshot in any case.
			delete(c.broken, s.key().Name)
		}
	}
	if err := m.storable(s, f); err != nil {
		return false, err
	}
	if at, waits := m.unconfirmed.Waits(s.key()); waits && !s.reserved && !s.leaving {
		return false, admission.Reject(s.key(), weftv1.Violation_REASON_UNCONFIRMED, nil,
			"it waits for a confirmation until %s: confirm it or take it back first (weft confirm)", at.Format(time.TimeOnly))
	}
	switch {
	case s.leaving:
		return !ok || !m.lifetimes.isAbandoned(f), nil
	case s.withdraws() && !ok && m.isOrphan(s.key()):
		return false, nil
	case s.withdraws() && !ok:
		if s.mustExist {
			return false, fmt.Errorf("%w: %s", ErrNotFound, s.key())
		}
		return true, nil
	case s.update.Snapshot && !ok && len(m.state.Fragments) >= admission.MaxFragments:
		return false, admission.Reject(s.key(), weftv1.Violation_REASON_LIMIT, nil, "there are %d fragments, and no more are accepted: delete some", admission.MaxFragments)
	case s.update.Snapshot:
		return false, nil
	case !ok && s.session.expired[s.key().Name]:
		return false, hasExpired(s.key())
	case !ok:
		return false, snapshotNeeded(s.key())
	case f.Session != s.session.id:
		if owner := m.lifetimes.sessions[f.Session]; owner != nil {
			return false, admission.Reject(s.key(), weftv1.Violation_REASON_TAKEN_OVER, nil,
				"another stream of publisher %s has sent a snapshot of this fragment since (process %d)", s.key().Publisher, owner.stream.PID)
		}
		return false, snapshotNeeded(s.key())
	case s.session.broken[s.key().Name] > f.Serial:
		return false, snapshotNeeded(s.key())
	default:
		return false, nil
	}
}

// apply compiles an update again if a declaration has changed while it was waiting.
//
// Possible errors: *RejectedError.
func (m *merger) apply(s *submission) error {
	err := m.applyWithin(s)
	if errors.Is(err, desired.ErrStale) && s.admitted != nil {
		var u *desired.Update
		if u, err = s.admitted.Recompile(s.update, m.state.Scope()); err != nil {
			return err
		}
		s.update = u
		if err = m.applyWithin(s); errors.Is(err, desired.ErrStale) {
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

func (m *merger) applyWithin(s *submission) error {
	p := m.access.Publisher(s.key().Publisher)
	switch {
	case p == nil || s.withdraws():
		return m.state.Apply(s.update)
	case s.stored:
		return m.state.ApplyWithin(s.update, admission.OverRights(p, s.key()), nil)
	}
	grant, limit := desired.Grant(m.granted), admission.OverLimit(p, s.key())
	if p.Admin {
		grant = nil
	}
	if s.returns {
		limit = admission.OverRights(p, s.key())
	}
	return m.state.ApplyWithin(s.update, func(before, after desired.Usage, effect desired.Effect) error {
		kept := m.unconfirmed.Kept(s.key().Publisher)
		before.Bytes, after.Bytes = before.Bytes+kept, after.Bytes+kept
		return limit(before, after, effect)
	}, grant)
}

// errNoGrant means that the configuration does not name the publisher: it owns its declarations.
var errNoGrant = errors.New("the publisher has no grants")

func (m *merger) granted(publisher, owner string, at desired.Place) error {
	p := m.access.Publisher(publisher)
	if p == nil {
		return errNoGrant
	}
	if r := p.Shared(at.Table, at.Kind, at.Name, owner); r != nil {
		return r
	}
	return nil
}

func (m *merger) limited(publisher string) bool {
	return m.access.Publisher(publisher).Limited()
}

func rejection(r *desired.Rejection) *RejectedError {
	out := &RejectedError{Fragment: r.Fragment}
	for _, v := range r.Violations {
		out.Violations = append(out.Violations, admission.Shorten(&weftv1.Violation{
			Object: admission.PlaceName(v.Object), Message: v.Message, Reason: weftv1.Violation_Reason(v.Reason),
		}))
		if refusal := (*access.Refusal)(nil); errors.As(v.Err, &refusal) {
			out.Refusals = append(out.Refusals, refusal)
		}
	}
	return out
}

// storable rejects a patch of a durable fragment while committed content is not stored. Admission checks
// the room for snapshots.
func (m *merger) storable(s *submission, f desired.Status) error {
	if s.update.Snapshot || f.Lifetime != desired.LifetimeDurable {
		return nil
	}
	if err := m.dir.Failing(); err != nil {
		return admission.Reject(s.key(), weftv1.Violation_REASON_LIMIT, nil, "%s", admission.NoRoom(err))
	}
	return nil
}

func (m *merger) isOrphan(key desired.Key) bool {
	return m.statuses.Get(key).GetState() == weftv1.FragmentStatus_STATE_ORPHANED
}

// maxTransaction bounds the kernel's time for a transaction of a publisher with limits, as predicted by
// package nft/cost.
const maxTransaction = 100 * time.Millisecond

type longError struct {
	took time.Duration
	most desired.Place
	// later is true if only the later withdrawal of the fragment takes too long.
	later bool
}

func (e *longError) Error() string {
	return fmt.Sprintf("the kernel would need about %v for it: at most %v are allowed, because all that changes nftables on the node waits meanwhile",
		e.took.Round(time.Millisecond), maxTransaction)
}

func (e *longError) rejection(key desired.Key) *RejectedError {
	advice := "send fewer changes of it at a time, or put all of it into a set or chain with another name: new sets are added in small steps"
	if e.later {
		return admission.Reject(key, weftv1.Violation_REASON_LIMIT, admission.PlaceName(e.most),
			"to withdraw the fragment again would take the kernel about %v: at most %v are allowed: give each fragment sets and maps of its own, and fewer elements to those with concatenated ranges",
			e.took.Round(time.Millisecond), maxTransaction)
	}
	return admission.Reject(key, weftv1.Violation_REASON_LIMIT, admission.PlaceName(e.most), "%v: %s", e, advice)
}

// bound returns a *longError if a plan would take too long and its updates can be divided or refused.
func (m *merger) bound(batch []*submission, plan *desired.Plan) error {
	if len(batch) > 1 || slices.ContainsFunc(batch, m.refusable) {
		if took, _, most := planner.KernelTime(m.state, plan.Ops); took > maxTransaction {
			return &longError{took: took, most: most}
		}
	}
	for _, s := range batch {
		if !m.refusable(s) {
			continue
		}
		if took, most := planner.LeaveTime(m.state, s.key()); took > max(maxTransaction, s.leaveTime) {
			return &longError{took: took, most: most, later: true}
		}
	}
	return nil
}

// boundPlan is bound for a plan with new sets to stage.
func (m *merger) boundPlan(steps []*submission, plan *desired.Plan) error {
	took, fresh, most := planner.KernelTime(m.state, plan.Ops)
	if took -= fresh; took > maxTransaction && slices.ContainsFunc(steps, m.refusable) {
		return &longError{took: took, most: most}
	}
	return nil
}

// refusable reports whether kernel time is a reason to refuse an update.
func (m *merger) refusable(s *submission) bool {
	return m.limited(s.key().Publisher) && !s.withdraws() && !s.stored && !s.returns && !s.leaving
}
