package aggregator

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/nft/kernel"
)

// record hands accepted updates to the history, after their status is updated. Without
// counts there was no commit.
func (w *writer) record(accepted []*submission, counts *weftv1.Counts, stats kernel.Stats, p phases) {
	if !w.history.Enabled() {
		return
	}
	c := &history.Commit{Revision: w.entry(counts), Empty: counts == nil, Patient: true}
	c.Revision.Size = uint64(stats.Bytes) //nolint:gosec // a size
	c.Revision.Wait, c.Revision.Build, c.Revision.Kernel = durationpb.New(p.wait), durationpb.New(p.build), durationpb.New(p.kernel)
	place := make(map[desired.Key]*weftv1.FragmentChange, len(accepted))
	for _, s := range accepted {
		// A session sends its fragments anew after a crash, and then the history has their content again.
		c.Patient = c.Patient && !s.update.Snapshot && !s.durable
		c.Changes = append(c.Changes, w.historyChange(s))
		key := s.key()
		m := place[key]
		if m == nil {
			m = &weftv1.FragmentChange{Fragment: nameOf(key), Kind: weftv1.FragmentChange_KIND_ADDED}
			if s.existed {
				m.Kind = weftv1.FragmentChange_KIND_CHANGED
			}
			place[key] = m
			c.Revision.Fragments = append(c.Revision.Fragments, m)
		}
		if s.withdraws() {
			m.Kind = weftv1.FragmentChange_KIND_WITHDRAWN
		} else if m.GetKind() == weftv1.FragmentChange_KIND_WITHDRAWN {
			m.Kind = weftv1.FragmentChange_KIND_CHANGED
		}
	}
	w.history.Record(c)
}

// recordRepair hands a commit to the history that no update has made.
func (w *writer) recordRepair(counts *weftv1.Counts) {
	w.history.Record(&history.Commit{Revision: w.entry(counts)})
}

// recordStart tells the history which fragments there are after a start.
func (w *writer) recordStart() {
	present := make(map[desired.Key]bool)
	for _, f := range w.state.Fragments() {
		present[f.Key] = true
	}
	w.history.Record(&history.Commit{Revision: w.entry(nil), Present: present, Empty: true})
}

// entry returns an entry of the history for the last commit.
func (w *writer) entry(counts *weftv1.Counts) *weftv1.Revision {
	return &weftv1.Revision{Revision: w.revision, Time: timestamppb.New(w.cfg.Now()), Changes: counts}
}

// historyChange returns what an update changes. Updates are immutable, so that the messages
// are made when they are written.
func (w *writer) historyChange(s *submission) history.Change {
	c, u := history.Change{Fragment: s.key(), Existed: s.existed, Withdrawn: s.withdraws()}, s.update
	if c.Withdrawn {
		return c
	}
	c.Weight = weigh(s)
	switch {
	case c.Weight > history.MaxContent:
	case u.Snapshot:
		c.Snapshot = func() *weftv1.Fragment {
			lifetime := admission.EffectiveLifetime(weftv1.Lifetime(u.Lifetime))
			return fragmentMessage(head(u.Fragment.Name, u.Priority, lifetime, expireTime(u.Expires)), u.Tables, time.Time{})
		}
	default:
		c.Patch = func() *weftv1.Patch { return patchMessage(u, time.Time{}) }
	}
	return c
}

// weigh returns about the size of an update in bytes. The text of a rule can be long.
func weigh(s *submission) int {
	const each = 64
	n := each * s.admitted.Cost()
	for i := range s.update.Tables {
		for _, chain := range s.update.Tables[i].PutChains {
			for _, r := range chain.Rules {
				n += len(r.Text) + len(r.Comment)
			}
		}
	}
	return n
}

// ListRevisions returns the history, the newest entry first, and the last revision that may be
// forgotten.
//
// Possible errors: history.ErrDisabled, history.ErrUnavailable, ErrStandby, ErrStopped,
// ErrGone, ctx's.
func (a *Aggregator) ListRevisions(ctx context.Context, req *weftv1.ListRevisionsRequest, r Reader) (all []*weftv1.Revision, forgotten uint64, err error) {
	if err := a.admitting(ctx.Done()); err != nil {
		return nil, 0, err
	}
	return a.history.List(ctx, history.Query{Limit: int(req.GetLimit()), Before: req.GetBefore(), Publisher: req.GetPublisher(), Reader: r})
}

// CompareRevisions returns the fragments that changed between two revisions, each in up to three
// messages.
//
// Possible errors: history.ErrDisabled, history.ErrForgotten, history.ErrNoRevision,
// history.ErrUnavailable, ErrStandby, ErrStopped, ErrGone, ctx's.
func (a *Aggregator) CompareRevisions(ctx context.Context, from, to uint64, r Reader) (iter.Seq[*weftv1.CompareRevisionsResponse], error) {
	differences, err := a.compare(ctx, from, to, r)
	if err != nil {
		return nil, err
	}
	return func(yield func(*weftv1.CompareRevisionsResponse) bool) {
		for i := range differences {
			d := &differences[i]
			name := nameOf(d.Fragment)
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
func (a *Aggregator) compare(ctx context.Context, from, to uint64, r Reader) ([]history.Difference, error) {
	if err := a.admitting(ctx.Done()); err != nil {
		return nil, err
	}
	newest := a.statuses.revision.Load()
	switch {
	case max(from, to) > newest:
		return nil, fmt.Errorf("%w: %d: the last one is %d", history.ErrNoRevision, max(from, to), newest)
	case to != 0 && from > to:
		return nil, fmt.Errorf("%w: %d comes after %d: name the earlier one first", history.ErrNoRevision, from, to)
	case to == 0:
		to = math.MaxUint64
	}
	return a.history.Compare(ctx, from, to, r)
}
