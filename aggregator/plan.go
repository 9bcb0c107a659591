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
	"github.com/weft-proxy/weft/aggregator/findings"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/lint"
)

// Plan returns the changes that a commit of a publisher's fragments would make, and the rejections. It
// delays updates by at most one commit of the same size. It waits while the aggregator starts.
//
// Possible errors: ErrInvalidName (the publisher), ErrProtocol (too many fragments), ErrKernel, ErrStandby,
// ErrStopped, ErrGone, ctx's.
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
	return p.outcome().Parts(message.PartBytes), nil
}

type planning struct {
	// steps are the admitted updates, withdrawals first.
	steps []*submission
	// place has the positions of fragments in the request, to order rejections.
	place    map[desired.Key]int
	rejected []*RejectedError

	preview  *desired.Preview
	accepted []*submission
	revision uint64
	wanted   bool
	merged   []*desired.Merged
	findings []*weftv1.Finding
}

func (a *Aggregator) newPlanning(publisher string, req *weftv1.PlanRequest) *planning {
	p := &planning{place: make(map[desired.Key]int), wanted: req.GetFindings()}
	for _, n := range req.GetWithdraw() {
		key := desired.Key{Publisher: cmp.Or(n.GetPublisher(), publisher), Name: n.GetName()}
		p.add(key, &submission{update: &desired.Update{Fragment: key, Snapshot: true}, mustExist: true}, admission.CheckKey(key))
	}
	// A fragment may use declarations of earlier fragments in the plan.
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

func (p *planning) outcome() *message.Plan {
	slices.SortStableFunc(p.rejected, func(x, y *RejectedError) int { return cmp.Compare(p.place[x.Fragment], p.place[y.Fragment]) })
	out := &message.Plan{Revision: p.revision, Preview: p.preview, Findings: p.findings}
	for _, r := range p.rejected {
		out.Rejections = append(out.Rejections, &weftv1.Rejection{Fragment: message.Name(r.Fragment), Violations: r.Violations})
	}
	for _, s := range p.accepted {
		out.Fragments = append(out.Fragments, s.key())
	}
	return out
}

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

func (p *planning) refuse(err error) bool {
	var r *RejectedError
	if !errors.As(err, &r) {
		return false
	}
	p.rejected = append(p.rejected, r)
	return true
}

// plan leaves the state unchanged.
func (w *writer) plan(p *planning) error {
	steps := p.steps
	for repaired := false; ; {
		// A plan starts from the committed state: repair the kernel first.
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
		case blame && suspicious(be) && !repaired && !w.cfg.Kernel.Owner():
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

func (w *writer) planApply(p *planning, steps []*submission) []*submission {
	accepted := make([]*submission, 0, len(steps))
	for _, s := range steps {
		f, ok := views.Fragment(w.state, s.key())
		done, err := w.merger.check(s, f, ok)
		if done {
			continue
		}
		if err == nil {
			err = w.merger.apply(s)
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

// preview has the kernel check the applied steps, and rolls them back.
func (w *writer) preview(p *planning, steps []*submission) (*desired.Preview, error) {
	keys := make([]desired.Key, 0, len(steps))
	for _, s := range steps {
		keys = append(keys, s.key())
	}
	preview := planner.Preview(w.state, keys)
	if p.wanted {
		p.merged = merged(w.state, desired.DetailPlanned)
	}
	var err error
	if len(preview.Ops) > 0 {
		if err = w.merger.boundPlan(steps, preview.Plan); err == nil {
			err = w.cfg.Kernel.Check(preview.Ops)
		}
	}
	w.state.Rollback()
	return preview, err
}

// planCulprit finds the first refused step if the kernel blames none. The state must be rolled back before,
// and is again after.
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

func (a *Aggregator) plannedFindings(ctx context.Context, publisher string, p *planning) ([]*weftv1.Finding, error) {
	// One at a time, to bound the cost.
	select {
	case a.inspecting <- struct{}{}:
		defer func() { <-a.inspecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	found, err := a.inspector.Find(p.merged)
	if err != nil {
		return nil, err
	}
	planned := func(party lint.Party) bool {
		_, ok := p.place[message.Key(message.Owner(party.Fragment))]
		return ok
	}
	var out []*weftv1.Finding
	for i := range found {
		if planned(found[i].Subject.Party) || planned(found[i].Other.Party) {
			out = append(out, findings.Message(&found[i], publisher))
		}
	}
	return out, nil
}
