package server

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// GetFragment implements weftv1.InspectServer.
func (s *service) GetFragment(req *weftv1.GetFragmentRequest, stream grpc.ServerStreamingServer[weftv1.GetFragmentResponse]) error {
	key, err := keyOf(stream.Context(), req.GetFragment())
	if err != nil {
		return err
	}
	st, content, err := s.agg.Get(stream.Context(), key.Publisher, key.Name)
	if err != nil {
		return err
	}
	for part := range content {
		if err := stream.Send(&weftv1.GetFragmentResponse{Status: st, Fragment: part}); err != nil {
			return err
		}
		st = nil
	}
	return nil
}

// ListFragments implements weftv1.InspectServer.
func (s *service) ListFragments(_ *weftv1.ListFragmentsRequest, stream grpc.ServerStreamingServer[weftv1.ListFragmentsResponse]) error {
	fragments, revision := s.agg.List()
	return sendList(fragments, func(part []*weftv1.FragmentStatus) error {
		defer func() { revision = 0 }() // it is in the first part only
		return stream.Send(&weftv1.ListFragmentsResponse{Fragments: part, Revision: revision})
	})
}

// GetTable implements weftv1.InspectServer.
func (s *service) GetTable(req *weftv1.GetTableRequest, stream grpc.ServerStreamingServer[weftv1.GetTableResponse]) error {
	table, err := s.agg.GetTable(stream.Context(), req)
	if err != nil {
		return err
	}
	return sendAll(table, stream.Send)
}

// ListTables implements weftv1.InspectServer.
func (s *service) ListTables(_ *weftv1.ListTablesRequest, stream grpc.ServerStreamingServer[weftv1.ListTablesResponse]) error {
	all, err := s.agg.ListTables(stream.Context())
	if err != nil {
		return err
	}
	return sendList(all.GetTables(), func(part []*weftv1.TableStatus) error {
		defer func() { all.Revision = 0 }() // it is in the first part only
		return stream.Send(&weftv1.ListTablesResponse{Tables: part, Revision: all.GetRevision()})
	})
}

// ListPublishers implements weftv1.InspectServer.
func (s *service) ListPublishers(_ *weftv1.ListPublishersRequest, stream grpc.ServerStreamingServer[weftv1.ListPublishersResponse]) error {
	all, err := s.agg.ListPublishers()
	if err != nil {
		return err
	}
	return sendList(all.GetPublishers(), func(part []*weftv1.PublisherStatus) error {
		return stream.Send(&weftv1.ListPublishersResponse{Publishers: part})
	})
}

// Owner implements weftv1.InspectServer.
func (s *service) Owner(ctx context.Context, req *weftv1.OwnerRequest) (*weftv1.OwnerResponse, error) {
	return s.agg.Owner(ctx, req)
}

// sendAll sends the parts of an answer.
func sendAll[T any](parts iter.Seq[T], send func(T) error) error {
	for part := range parts {
		if err := send(part); err != nil {
			return err
		}
	}
	return nil
}

// partBytes is about how much one message of a list holds.
const partBytes = 1 << 20

// sendList calls send for each part of a list, and once for an empty list.
func sendList[T proto.Message](list []T, send func(part []T) error) error {
	size, from := 0, 0
	for i, entry := range list {
		if size >= partBytes {
			if err := send(list[from:i]); err != nil {
				return err
			}
			size, from = 0, i
		}
		size += proto.Size(entry)
	}
	return send(list[from:])
}
