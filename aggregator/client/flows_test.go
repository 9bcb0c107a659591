package client_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// flowServer answers calls about flows, and remembers requests.
type flowServer struct {
	weftv1.UnimplementedFlowsServer
	parts   []*weftv1.ListFlowsResponse
	err     error
	listed  *weftv1.ListFlowsRequest
	deleted []int
}

func (s *flowServer) ListFlows(req *weftv1.ListFlowsRequest, stream grpc.ServerStreamingServer[weftv1.ListFlowsResponse]) error {
	s.listed = req
	for _, part := range s.parts {
		if err := stream.Send(part); err != nil {
			return err
		}
	}
	return s.err
}

func (s *flowServer) DeleteFlows(_ context.Context, req *weftv1.DeleteFlowsRequest) (*weftv1.DeleteFlowsResponse, error) {
	if len(s.deleted) == 2 {
		return nil, s.err
	}
	s.deleted = append(s.deleted, len(req.GetFlows()))
	return &weftv1.DeleteFlowsResponse{Deleted: uint32(len(req.GetFlows()) - 1)}, nil //nolint:gosec // small
}

// TestFlows lists in parts and deletes in batches, until an error.
func TestFlows(t *testing.T) {
	s := &flowServer{err: status.Error(codes.ResourceExhausted, "too much"), parts: []*weftv1.ListFlowsResponse{
		{Flows: []*weftv1.Flow{{Protocol: 17, Source: []byte{10, 0, 0, 1}, SourcePort: 4000, Id: 7}}}, {}, {Flows: []*weftv1.Flow{{Protocol: 6, TcpState: weftv1.TCPState_TCP_STATE_CLOSE}}},
	}}
	f := newFakeServing(t, func(f *fake) apiServer {
		return struct {
			*fake
			weftv1.FlowsServer
		}{f, s}
	})
	c, err := client.Dial(aggregatortest.Context(t), client.Config{Socket: f.socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := aggregatortest.Context(t)
	var got []client.Flow
	keep := func(part []client.Flow) error { got = append(got, part...); return nil }
	if err := c.ListFlows(ctx, []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("fd00::1")}, keep); !errors.Is(err, client.ErrLimit) {
		t.Errorf("ListFlows = %v, want ErrLimit", err)
	}
	want := []client.Flow{{Protocol: 17, Source: netip.MustParseAddrPort("10.0.0.1:4000"), ID: 7}, {Protocol: 6, TCPState: weftv1.TCPState_TCP_STATE_CLOSE}}
	if !slices.Equal(got, want) {
		t.Errorf("flows %+v, want %+v", got, want)
	}
	if a := s.listed.GetAddresses(); len(a) != 2 || len(a[0]) != 4 || len(a[1]) != 16 || s.listed.GetAll() {
		t.Errorf("request %v", s.listed)
	}
	s.err = nil
	if err := c.ListAllFlows(ctx, keep); err != nil || !s.listed.GetAll() || len(got) != 4 {
		t.Errorf("ListAllFlows = %v, request %v, %d flows", err, s.listed, len(got))
	}
	s.err = status.Error(codes.PermissionDenied, "no")
	deleted, err := c.DeleteFlows(ctx, make([]client.Flow, 10_000))
	if !errors.Is(err, client.ErrPermission) || deleted != 2*4095 || !slices.Equal(s.deleted, []int{4096, 4096}) {
		t.Errorf("DeleteFlows = %d, %v after batches of %d", deleted, err, s.deleted)
	}
	if err := c.ListFlows(ctx, make([]netip.Addr, client.MaxFlowAddresses+1), keep); !errors.Is(err, client.ErrTooLarge) {
		t.Errorf("ListFlows = %v, want ErrTooLarge", err)
	}
}
