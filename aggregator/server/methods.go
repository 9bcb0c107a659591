package server

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// service implements the calls. Errors become statuses in the interceptors.
type service struct {
	weftv1.UnimplementedAggregatorServer
	agg   *aggregator.Aggregator
	pacer *pacer
	parts *unfinished
	log   *slog.Logger
}

// Apply replaces one of the caller's fragments.
func (s *service) Apply(ctx context.Context, req *weftv1.ApplyRequest) (*weftv1.ApplyResponse, error) {
	c, err := callerFrom(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.agg.Apply(ctx, c.publisher, req.GetFragment())
	if err != nil {
		return nil, err
	}
	return &weftv1.ApplyResponse{Revision: r.Revision, Changes: r.Changes}, nil
}

// Delete withdraws a fragment.
func (s *service) Delete(ctx context.Context, req *weftv1.DeleteRequest) (*weftv1.DeleteResponse, error) {
	publisher, err := s.publisher(ctx, req.GetPublisher())
	if err != nil {
		return nil, err
	}
	r, err := s.agg.Delete(ctx, publisher, req.GetFragment())
	if err != nil {
		return nil, err
	}
	return &weftv1.DeleteResponse{Revision: r.Revision}, nil
}

// Get returns a fragment's content and status.
func (s *service) Get(ctx context.Context, req *weftv1.GetRequest) (*weftv1.GetResponse, error) {
	publisher, err := s.publisher(ctx, req.GetPublisher())
	if err != nil {
		return nil, err
	}
	st, f, err := s.agg.Get(ctx, publisher, req.GetFragment())
	if err != nil {
		return nil, err
	}
	return &weftv1.GetResponse{Status: st, Fragment: f}, nil
}

// List returns the status of all fragments.
func (s *service) List(context.Context, *weftv1.ListRequest) (*weftv1.ListResponse, error) {
	fragments, revision := s.agg.List()
	return &weftv1.ListResponse{Fragments: fragments, Revision: revision}, nil
}

// Watch streams events. The header is sent once events are being collected.
func (s *service) Watch(_ *weftv1.WatchRequest, stream grpc.ServerStreamingServer[weftv1.Event]) error {
	return s.agg.Watch(stream.Context(), func() error { return stream.SendHeader(metadata.MD{}) }, stream.Send)
}

// publisher returns whose fragment a call is about: the caller's own where
// name is empty.
func (s *service) publisher(ctx context.Context, name string) (string, error) {
	c, err := callerFrom(ctx)
	if err != nil {
		return "", err
	}
	if name == "" {
		return c.publisher, nil
	}
	return name, c.foreign(name)
}
