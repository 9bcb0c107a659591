package server

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func (s *service) ListRevisions(req *weftv1.ListRevisionsRequest, stream grpc.ServerStreamingServer[weftv1.ListRevisionsResponse]) error {
	return s.reads.call(stream.Context(), func(r *read, c caller) error {
		var forgotten uint64
		all, err := inTurn(stream.Context(), c, func() (all []*weftv1.Revision, err error) {
			all, forgotten, err = s.agg.ListRevisions(stream.Context(), req, c.reader())
			return all, err
		})
		if err != nil {
			return err
		}
		return sendList(r, all, func(part []*weftv1.Revision) error {
			defer func() { forgotten = 0 }() // it is in the first part only
			return stream.Send(&weftv1.ListRevisionsResponse{Revisions: part, Forgotten: forgotten})
		})
	})
}

// inTurn calls f in the caller's turn, if there is one. The next publisher may begin while this one
// reads the answer.
func inTurn[T any](ctx context.Context, c caller, f func() (T, error)) (result T, err error) {
	if c.turn == nil {
		return f()
	}
	if err := c.turn.Take(ctx); err != nil {
		return result, err
	}
	defer c.turn.End(0)
	return f()
}

func (s *service) CompareRevisions(req *weftv1.CompareRevisionsRequest, stream grpc.ServerStreamingServer[weftv1.CompareRevisionsResponse]) error {
	return s.reads.call(stream.Context(), func(r *read, c caller) error {
		content, err := inTurn(stream.Context(), c, func() (iter.Seq[*weftv1.CompareRevisionsResponse], error) {
			return s.agg.CompareRevisions(stream.Context(), req.GetFrom(), req.GetTo(), c.reader())
		})
		if err != nil {
			return err
		}
		return sendAll(r, content, stream.Send)
	})
}
