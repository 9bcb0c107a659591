package aggregator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft/kernel"
)

// Plan returns what a commit of a publisher's fragments would change, and what would
// be rejected: by admission, by the merge, and by the kernel. Nothing changes, no event is sent, and no update waits longer than for one
// commit of the same size. Plan waits while the aggregator starts.
//
// Possible errors: ErrInvalidName (the publisher), ErrProtocol (too many
// fragments), ErrKernel, ErrStandby, ErrStopped, ErrGone (ctx ended during the start),
// ctx's.
func (a *Aggregator) Plan(ctx context.Context, publisher string, req *weftv1.PlanRequest) (iter.Seq[*weftv1.PlanResponse], error) {
	if err := admission.CheckIdentity("publisher", publisher); err != nil {
		return nil, err
	}
	if err := a.admitting(ctx.Done()); err != nil {
		return nil, err
	}
	if n := len(req.GetFragments()) + len(req.GetWithdraw()); n > admission.MaxPlan {
		return nil, fmt.Errorf("%w: the plan has %d fragments: at most %d are allowed", ErrProtocol, n, admission.MaxPlan)
	}
	p := a.newPlanning(publisher, req)
	var failed error
	if err := a.ask(ctx, func(w *writer) { failed = w.plan(p) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	if req.GetFindings() && len(p.rejected) == 0 {
		found, err := a.plannedFindings(ctx, publisher, p)
		if err != nil {
			return nil, fmt.Errorf("%w: look for findings: %w", ErrKernel, err)
		}
		p.findings = found
	}
	return p.parts(partBytes), nil
}

// planning is a plan on its way to the writer and back.
type planning struct {
	// steps are the admitted updates, withdrawals first.
	steps []*submission
	// place is where fragments are in the request, for the order of rejections.
	place    map[desired.Key]int
	rejected []*RejectedError

	// preview is what the steps that were accepted would change; nil where
	// there are none.
	preview  *desired.Preview
	accepted []*submission
	revision uint64
	// merged are all tables as the plan would leave them, if findings are wanted.
	wanted   bool
	merged   []*desired.Merged
	findings []*weftv1.Finding
}

// newPlanning admits the updates of a plan.
func (a *Aggregator) newPlanning(publisher string, req *weftv1.PlanRequest) *planning {
	p := &planning{place: make(map[desired.Key]int), wanted: req.GetFindings()}
	for _, n := range req.GetWithdraw() {
		key := desired.Key{Publisher: cmp.Or(n.GetPublisher(), publisher), Name: n.GetName()}
		p.add(key, &submission{update: &desired.Update{Fragment: key, Snapshot: true}, mustExist: true}, admission.CheckKey(key))
	}
	// A fragment may use what those before it in the plan declare.
	scope := admission.Scope(a.scope.Load())
	for _, f := range req.GetFragments() {
		key := desired.Key{Publisher: publisher, Name: f.GetName()}
		adm := admission.NewSnapshot(a.admission, key, scope)
		adm.AddFragment(f)
		u, err := adm.Finish()
		p.add(adm.Key(), &submission{update: u, admitted: adm}, err)
		if err == nil {
			declared, _ := adm.Declared()
			scope = &scopes{declared, scope}
		}
	}
	return p
}

// add appends a step, or where there is an error its refusal.
func (p *planning) add(key desired.Key, s *submission, err error) {
	if errors.Is(err, ErrInvalidName) {
		err = invalidName(key, err)
		key.Name = admission.Clip(key.Name)
	}
	if _, ok := p.place[key]; !ok {
		p.place[key] = len(p.place)
	}
	if err != nil {
		p.refuse(err)
		return
	}
	p.steps = append(p.steps, s)
}

// refuse notes a rejection; any other error is false.
func (p *planning) refuse(err error) bool {
	var r *RejectedError
	if !errors.As(err, &r) {
		return false
	}
	p.rejected = append(p.rejected, r)
	return true
}

// plan works out a plan against the state, and leaves the state as it was.
func (w *writer) plan(p *planning) error {
	steps := p.steps
	for repaired := false; ; {
		// The plan is about what was committed: that comes first.
		if err := w.repairFor(steps, repaired); err != nil {
			return fmt.Errorf("%w: %w", ErrKernel, err)
		}
		p.accepted, p.revision = w.planApply(p, steps), w.revision
		steps = p.accepted
		preview, err := w.preview(p, steps)
		if err == nil {
			p.preview = preview
			return nil
		}
		var be *kernel.BatchError
		var long *longError
		switch blame := errors.As(err, &be); {
		case blame && suspicious(be) && !repaired && !w.OwnsTables():
			// As in a commit: perhaps the kernel does not hold what it should.
			w.drift, repaired = be.Error(), true
		case blame || errors.Is(err, kernel.ErrTooLarge) || errors.As(err, &long):
			i := -1
			if blame {
				i = culprit(preview.Plan, be.Index, len(steps))
			}
			if i < 0 {
				i = w.planCulprit(steps)
			}
			if long != nil {
				p.refuse(long.rejection(steps[i].key()))
			} else {
				p.refuse(admission.KernelRejection(steps[i].key(), err))
			}
			steps = slices.Concat(steps[:i], steps[i+1:])
		case repaired:
			return fmt.Errorf("%w: %w", ErrKernel, err)
		default:
			w.drift, repaired = err.Error(), true
		}
	}
}

// planApply applies steps to the state, notes those that it refuses and returns
// the others.
func (w *writer) planApply(p *planning, steps []*submission) []*submission {
	accepted := make([]*submission, 0, len(steps))
	for _, s := range steps {
		f, ok := views.Fragment(w.state, s.key())
		done, err := w.checkOwner(s, f, ok)
		if done {
			continue
		}
		if err == nil {
			err = w.applyUpdate(s)
		}
		switch {
		case err == nil:
			accepted = append(accepted, s)
		case errors.Is(err, ErrNotFound):
			p.refuse(admission.Reject(s.key(), weftv1.Violation_REASON_REFERENCE, nil, "there is no such fragment to withdraw"))
		case !p.refuse(err):
			p.refuse(admission.Reject(s.key(), weftv1.Violation_REASON_INVALID, nil, "%v", err))
		}
	}
	return accepted
}

// preview returns what the applied steps would change, and the kernel's
// objection to it, and rolls back.
func (w *writer) preview(p *planning, steps []*submission) (*desired.Preview, error) {
	keys := make([]desired.Key, 0, len(steps))
	for _, s := range steps {
		keys = append(keys, s.key())
	}
	preview := planner.Preview(w.state, keys)
	if p.wanted {
		p.merged = w.merged(desired.DetailPlanned)
	}
	var err error
	if len(preview.Ops) > 0 {
		if err = w.boundPlan(steps, preview.Plan); err == nil {
			err = w.cfg.Kernel.Check(preview.Ops)
		}
	}
	w.state.Rollback()
	return preview, err
}

// planCulprit finds the step from which on the kernel refuses, where it blames
// none: the state has been rolled back, and is again when this returns.
func (w *writer) planCulprit(steps []*submission) int {
	return min(len(steps)-1, sort.Search(len(steps), func(i int) bool {
		for _, s := range steps[:i+1] {
			if err := w.state.Apply(s.update); err != nil {
				w.state.Rollback()
				return true
			}
		}
		_, err := w.preview(&planning{}, steps[:i+1])
		return err != nil
	}))
}
