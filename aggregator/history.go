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
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/message"
)

func (o *observers) record(c *outcome) {
	if !o.history.Enabled() {
		return
	}
	entry := &history.Commit{Revision: o.entry(c.revision, c.counts), Empty: c.counts == nil, Patient: true}
	r := entry.Revision
	r.Size = uint64(c.stats.Bytes) //nolint:gosec // a size
	r.Wait, r.Build, r.Kernel = durationpb.New(c.timing.wait), durationpb.New(c.timing.build), durationpb.New(c.timing.kernel)
	place := make(map[desired.Key]*weftv1.FragmentChange, len(c.accepted))
	for _, s := range c.accepted {
		// A session's patch may be lost in a crash: the session sends its fragments again.
		entry.Patient = entry.Patient && !s.update.Snapshot && !s.durable
		entry.Updates = append(entry.Updates, historyUpdate(s))
		key := s.key()
		m := place[key]
		if m == nil {
			m = &weftv1.FragmentChange{Fragment: message.Name(key), Kind: weftv1.FragmentChange_KIND_ADDED}
			if s.existed {
				m.Kind = weftv1.FragmentChange_KIND_CHANGED
			}
			place[key] = m
			r.Fragments = append(r.Fragments, m)
		}
		if s.withdraws() {
			m.Kind = weftv1.FragmentChange_KIND_WITHDRAWN
		} else if m.GetKind() == weftv1.FragmentChange_KIND_WITHDRAWN {
			m.Kind = weftv1.FragmentChange_KIND_CHANGED
		}
	}
	o.history.Record(entry)
}

func (o *observers) started(state *merge.State, revision uint64) {
	present := make(map[desired.Key]bool)
	for _, f := range views.Fragments(state) {
		present[f.Key] = true
	}
	o.history.Record(&history.Commit{Revision: o.entry(revision, nil), Present: present, Empty: true})
}

func (o *observers) entry(revision uint64, counts *weftv1.Counts) *weftv1.Revision {
	return &weftv1.Revision{Revision: revision, Time: timestamppb.New(o.now()), Changes: counts}
}

// historyUpdate makes the messages when they are written: updates are immutable.
func historyUpdate(s *submission) history.Update {
	c, u := history.Update{Fragment: s.key(), Existed: s.existed, Withdrawn: s.withdraws()}, s.update
	if c.Withdrawn {
		return c
	}
	c.Weight = weigh(s)
	switch {
	case c.Weight > history.MaxContent:
	case u.Snapshot:
		c.Snapshot = func() *weftv1.Fragment {
			lifetime := admission.EffectiveLifetime(weftv1.Lifetime(u.Lifetime))
			return message.Fragment(message.Head(u.Fragment.Name, u.Priority, lifetime, message.ExpireTime(u.Expires)), u.Tables, time.Time{})
		}
	default:
		c.Patch = func() *weftv1.Patch { return message.Patch(u, time.Time{}) }
	}
	return c
}

func weigh(s *submission) int {
	const each = 64
	n := each * s.Size()
	for i := range s.update.Tables {
		for _, chain := range s.update.Tables[i].PutChains {
			for _, r := range chain.Rules {
				n += len(r.Text) + len(r.Comment)
			}
		}
	}
	return n
}

// ListRevisions returns the history, newest entry first, and the last revision that may be forgotten.
//
// Possible errors: history.ErrDisabled, history.ErrUnavailable, ErrStandby, ErrStopped, ErrGone, ctx's.
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

// compare covers the revisions after from, up to to; 0 means the last one.
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
