package server

import (
	"context"

	"google.golang.org/grpc"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// ListRevisions implements weftv1.HistoryServer.
func (s *service) ListRevisions(req *weftv1.ListRevisionsRequest, stream grpc.ServerStreamingServer[weftv1.ListRevisionsResponse]) error {
	r, err := s.reads.begin(stream.Context())
	if err != nil {
		return err
	}
	defer r.end()
	c := callerFrom(stream.Context())
	if err := c.takeTurn(stream.Context()); err != nil {
		return err
	}
	all, forgotten, err := s.agg.ListRevisions(stream.Context(), req, c.reader())
	c.endTurn()
	if err != nil {
		return err
	}
	return sendList(r, all, func(part []*weftv1.Revision) error {
		defer func() { forgotten = 0 }() // it is in the first part only
		return stream.Send(&weftv1.ListRevisionsResponse{Revisions: part, Forgotten: forgotten})
	})
}

// takeTurn waits for the turn of a caller that has turns.
//
// Possible errors: ctx's.
func (c caller) takeTurn(ctx context.Context) error {
	if c.turn == nil {
		return nil
	}
	return c.turn.Take(ctx)
}

func (c caller) endTurn() {
	if c.turn != nil {
		c.turn.End(0)
	}
}

// CompareRevisions implements weftv1.HistoryServer.
func (s *service) CompareRevisions(req *weftv1.CompareRevisionsRequest, stream grpc.ServerStreamingServer[weftv1.CompareRevisionsResponse]) error {
	r, err := s.reads.begin(stream.Context())
	if err != nil {
		return err
	}
	defer r.end()
	c := callerFrom(stream.Context())
	if err := c.takeTurn(stream.Context()); err != nil {
		return err
	}
	content, err := s.agg.CompareRevisions(stream.Context(), req.GetFrom(), req.GetTo(), c.reader())
	// The next publisher may begin while this one reads.
	c.endTurn()
	if err != nil {
		return err
	}
	return sendAll(r, content, stream.Send)
}
