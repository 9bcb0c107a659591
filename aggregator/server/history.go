package server

import (
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
	all, forgotten, err := s.agg.ListRevisions(stream.Context(), req, callerFrom(stream.Context()).reader())
	if err != nil {
		return err
	}
	return sendList(r, all, func(part []*weftv1.Revision) error {
		defer func() { forgotten = 0 }() // it is in the first part only
		return stream.Send(&weftv1.ListRevisionsResponse{Revisions: part, Forgotten: forgotten})
	})
}

// CompareRevisions implements weftv1.HistoryServer.
func (s *service) CompareRevisions(req *weftv1.CompareRevisionsRequest, stream grpc.ServerStreamingServer[weftv1.CompareRevisionsResponse]) error {
	r, err := s.reads.begin(stream.Context())
	if err != nil {
		return err
	}
	defer r.end()
	content, err := s.agg.CompareRevisions(stream.Context(), req.GetFrom(), req.GetTo(), callerFrom(stream.Context()).reader())
	if err != nil {
		return err
	}
	return sendAll(r, content, stream.Send)
}
