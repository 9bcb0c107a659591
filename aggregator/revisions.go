package aggregator

import (
	"context"
	"fmt"
	"iter"
	"math"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/message"
)

// ListRevisions returns the history, the newest entry first, and the last revision that may be
// forgotten.
//
// Possible errors: history.ErrDisabled, history.ErrUnavailable, ErrStandby, ErrStopped,
// ErrGone, ctx's.
func (rs *Reads) ListRevisions(ctx context.Context, req *weftv1.ListRevisionsRequest, r Reader) (all []*weftv1.Revision, forgotten uint64, err error) {
	if err := rs.life.admitting(ctx.Done()); err != nil {
		return nil, 0, err
	}
	return rs.history.List(ctx, history.Query{Limit: int(req.GetLimit()), Before: req.GetBefore(), Publisher: req.GetPublisher(), Reader: r})
}

// CompareRevisions returns the fragments that changed between two revisions, each in up to three
// messages.
//
// Possible errors: history.ErrDisabled, history.ErrForgotten, history.ErrNoRevision,
// history.ErrUnavailable, ErrStandby, ErrStopped, ErrGone, ctx's.
func (rs *Reads) CompareRevisions(ctx context.Context, from, to uint64, r Reader) (iter.Seq[*weftv1.CompareRevisionsResponse], error) {
	differences, err := rs.compare(ctx, from, to, r)
	if err != nil {
		return nil, err
	}
	return func(yield func(*weftv1.CompareRevisionsResponse) bool) {
		for i := range differences {
			d := &differences[i]
			name := message.Name(d.Fragment)
			for _, c := range []*weftv1.FragmentComparison{
				{Fragment: name, FromState: d.From.State, ToState: d.To.State},
				{Fragment: name, From: d.From.Fragment},
				{Fragment: name, To: d.To.Fragment},
			} {
				if !yield(&weftv1.CompareRevisionsResponse{Fragments: []*weftv1.FragmentComparison{c}}) {
					return
				}
			}
		}
	}, nil
}

// compare returns the fragments that changed after one revision, up to another one; 0 means
// the last one.
func (rs *Reads) compare(ctx context.Context, from, to uint64, r Reader) ([]history.Difference, error) {
	if err := rs.life.admitting(ctx.Done()); err != nil {
		return nil, err
	}
	newest := rs.statuses.Revision.Load()
	switch {
	case max(from, to) > newest:
		return nil, fmt.Errorf("%w: %d: the last one is %d", history.ErrNoRevision, max(from, to), newest)
	case to != 0 && from > to:
		return nil, fmt.Errorf("%w: %d comes after %d: name the earlier one first", history.ErrNoRevision, from, to)
	case to == 0:
		to = math.MaxUint64
	}
	return rs.history.Compare(ctx, from, to, r)
}
