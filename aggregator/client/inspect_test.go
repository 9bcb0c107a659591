package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
)

// inspected is an aggregator that answers what it is told to, and notes what it
// was asked.
type inspected struct {
	*fake
	asked proto.Message
	err   error
}

func reply[T proto.Message](i *inspected, req proto.Message, resp T) (T, error) {
	i.asked = proto.Clone(req)
	return resp, i.err
}

// replyInParts is reply for an answer that comes in parts.
func replyInParts[T proto.Message](i *inspected, req proto.Message, send func(T) error, resp T) error {
	i.asked = proto.Clone(req)
	if i.err != nil {
		return i.err
	}
	return send(resp)
}

func (i *inspected) Plan(req *weftv1.PlanRequest, stream grpc.ServerStreamingServer[weftv1.PlanResponse]) error {
	return replyInParts(i, req, stream.Send, &weftv1.PlanResponse{Revision: 1})
}

func (i *inspected) ListTables(req *weftv1.ListTablesRequest, stream grpc.ServerStreamingServer[weftv1.ListTablesResponse]) error {
	return replyInParts(i, req, stream.Send, &weftv1.ListTablesResponse{Revision: 2})
}

func (i *inspected) GetTable(req *weftv1.GetTableRequest, stream grpc.ServerStreamingServer[weftv1.GetTableResponse]) error {
	return replyInParts(i, req, stream.Send, &weftv1.GetTableResponse{Revision: 3})
}

func (i *inspected) ListPublishers(req *weftv1.ListPublishersRequest, stream grpc.ServerStreamingServer[weftv1.ListPublishersResponse]) error {
	return replyInParts(i, req, stream.Send, &weftv1.ListPublishersResponse{Publishers: []*weftv1.PublisherStatus{{Name: "p"}}})
}

func (i *inspected) Owner(_ context.Context, req *weftv1.OwnerRequest) (*weftv1.OwnerResponse, error) {
	return reply(i, req, &weftv1.OwnerResponse{Owners: []*weftv1.ObjectOwner{{Fragment: &weftv1.FragmentName{Name: "f"}}}})
}

func (i *inspected) Cleanup(_ context.Context, req *weftv1.CleanupRequest) (*weftv1.CleanupResponse, error) {
	return reply(i, req, &weftv1.CleanupResponse{Tables: []*weftv1.ObjectName{{Kind: "table", Family: "ip", Table: "weft"}}})
}

func TestCallsThatInspect(t *testing.T) {
	var i *inspected
	newFakeServing(t, func(f *fake) apiServer {
		i = &inspected{fake: f}
		return i
	})
	old := newFake(t)
	ctx := aggregatortest.Context(t)
	plan := &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{{Name: "f"}}, Withdraw: []*weftv1.FragmentName{{Publisher: "p", Name: "g"}}}
	owner := &weftv1.OwnerRequest{Object: nametest.Parse("rule ip t c handle 7")}
	calls := []struct {
		name  string
		call  func(ctx context.Context, c *client.Client) (bool, error)
		asked proto.Message
	}{
		{"plan", func(ctx context.Context, c *client.Client) (bool, error) {
			r, err := c.Plan(ctx, plan)
			return r.GetRevision() == 1, err
		}, plan},
		{"list tables", func(ctx context.Context, c *client.Client) (bool, error) {
			r, err := c.ListTables(ctx)
			return r.GetRevision() == 2, err
		}, &weftv1.ListTablesRequest{}},
		{"get table ip t", func(ctx context.Context, c *client.Client) (bool, error) {
			r, err := c.GetTable(ctx, &weftv1.GetTableRequest{Family: "ip", Name: "t", Terse: true})
			return r.GetRevision() == 3, err
		}, &weftv1.GetTableRequest{Family: "ip", Name: "t", Terse: true}},
		{"list publishers", func(ctx context.Context, c *client.Client) (bool, error) {
			r, err := c.ListPublishers(ctx)
			return len(r.GetPublishers()) == 1, err
		}, &weftv1.ListPublishersRequest{}},
		{"find the owner of rule ip t c handle 7", func(ctx context.Context, c *client.Client) (bool, error) {
			r, err := c.Owner(ctx, owner)
			return len(r.GetOwners()) == 1, err
		}, owner},
		{"clean up", func(ctx context.Context, c *client.Client) (bool, error) {
			r, err := c.Cleanup(ctx)
			return slices.Equal(r, []string{"ip weft"}), err
		}, &weftv1.CleanupRequest{}},
	}
	for _, tt := range calls {
		t.Run(tt.name, func(t *testing.T) {
			c := i.dial(t)
			i.err = nil
			if ok, err := tt.call(ctx, c); !ok || err != nil || !proto.Equal(i.asked, tt.asked) {
				t.Errorf("answer is right: %v; error %v; asked %v: want %v", ok, err, i.asked, tt.asked)
			}
			for code, want := range map[codes.Code]error{codes.PermissionDenied: client.ErrPermission, codes.NotFound: client.ErrNotFound, codes.Unavailable: client.ErrUnavailable} {
				i.err = status.Error(code, "why")
				if _, err := tt.call(ctx, c); !errors.Is(err, want) || !strings.HasPrefix(err.Error(), tt.name+": ") {
					t.Errorf("%v became %v", code, err)
				}
			}
			if _, err := tt.call(ctx, old.dial(t)); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("an older aggregator: %v", err)
			}
			gone, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := tt.call(gone, c); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			_ = c.Close()
			if _, err := tt.call(ctx, c); !errors.Is(err, client.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		})
	}
}
