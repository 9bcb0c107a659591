package server_test

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// api calls the services. Its methods that shadow those of the generated clients
// return an answer that comes in parts as a whole.
type api struct {
	weftv1.PublisherClient
	weftv1.InspectClient
	weftv1.FlowsClient
	weftv1.AdminClient
}

func newAPI(conn grpc.ClientConnInterface) api {
	return api{weftv1.NewPublisherClient(conn), weftv1.NewInspectClient(conn), weftv1.NewFlowsClient(conn), weftv1.NewAdminClient(conn)}
}

func (a api) Get(ctx context.Context, req *weftv1.GetFragmentRequest) (*weftv1.GetFragmentResponse, error) {
	whole := &weftv1.GetFragmentResponse{}
	return whole, each(ctx, a.InspectClient.GetFragment, req, whole.Join)
}

func (a api) List(ctx context.Context, req *weftv1.ListFragmentsRequest) (*weftv1.ListFragmentsResponse, error) {
	whole := &weftv1.ListFragmentsResponse{}
	return whole, each(ctx, a.InspectClient.ListFragments, req, func(part *weftv1.ListFragmentsResponse) { proto.Merge(whole, part) })
}

// each calls f with every message of a stream.
func each[Req, Resp any](ctx context.Context, call func(context.Context, *Req, ...grpc.CallOption) (grpc.ServerStreamingClient[Resp], error), req *Req, f func(*Resp)) error {
	stream, err := call(ctx, req)
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f(m)
	}
}
