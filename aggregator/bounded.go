package aggregator

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
)

// maxTransaction is how long a transaction of a publisher with limits may take the kernel, as
// predicted by package nft/cost. All writers of nftables wait for it.
const maxTransaction = 100 * time.Millisecond

// longError is a transaction that would take the kernel too long.
type longError struct {
	took time.Duration
	most desired.Place
	// later is true if it is not this transaction, but the one that withdraws the fragment.
	later bool
}

func (e *longError) Error() string {
	return fmt.Sprintf("the kernel would need about %v for it: at most %v are allowed, because all that changes nftables on the node waits meanwhile",
		e.took.Round(time.Millisecond), maxTransaction)
}

// bound returns a *longError if a plan would take the kernel too long, and can be divided into
// those of several updates or refused. It is called before the commit.
func (w *writer) bound(batch []*submission, plan *desired.Plan) error {
	if len(batch) > 1 || slices.ContainsFunc(batch, w.refusable) {
		if took, _, most := planner.KernelTime(w.state, plan.Ops); took > maxTransaction {
			return &longError{took: took, most: most}
		}
	}
	for _, s := range batch {
		if !w.refusable(s) {
			continue
		}
		if took, most := planner.LeaveTime(w.state, s.key()); took > max(maxTransaction, s.leaveTime) {
			return &longError{took: took, most: most, later: true}
		}
	}
	return nil
}

// boundPlan is bound for a plan that is not committed: new sets would be staged.
func (w *writer) boundPlan(steps []*submission, plan *desired.Plan) error {
	took, fresh, most := planner.KernelTime(w.state, plan.Ops)
	if took -= fresh; took > maxTransaction && slices.ContainsFunc(steps, w.refusable) {
		return &longError{took: took, most: most}
	}
	return nil
}

// refusable reports whether an update may be refused because it takes the kernel too long: one of
// a publisher with limits, which brings something that was not in force before.
func (w *writer) refusable(s *submission) bool {
	return w.limited(s.key().Publisher) && !s.withdraws() && !s.stored && !s.returns && !s.leaving
}

// rejection returns why an update is refused, and what to do.
func (e *longError) rejection(key desired.Key) *RejectedError {
	advice := "send fewer changes of it at a time, or put all of it into a set or chain with another name: new sets are added in small steps"
	if e.later {
		return admission.Reject(key, weftv1.Violation_REASON_LIMIT, admission.PlaceName(e.most),
			"to withdraw the fragment again would take the kernel about %v: at most %v are allowed: give each fragment sets and maps of its own, and fewer elements to those with concatenated ranges",
			e.took.Round(time.Millisecond), maxTransaction)
	}
	return admission.Reject(key, weftv1.Violation_REASON_LIMIT, admission.PlaceName(e.most), "%v: %s", e, advice)
}
