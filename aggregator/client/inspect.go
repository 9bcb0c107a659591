package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Plan returns what a commit of the request's fragments would change, and what
// of it would be refused; it changes nothing. A request larger than one message
// is refused with ErrTooLarge.
//
// Possible errors: ErrPermission, ErrLimit, ErrTooLarge, ErrInvalid,
// ErrUnavailable, ErrClosed, errors.ErrUnsupported (an older aggregator), ctx's.
func (c *Client) Plan(ctx context.Context, req *weftv1.PlanRequest) (*weftv1.PlanResponse, error) {
	if err := checkSize(req); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	whole := &weftv1.PlanResponse{}
	if err := collect(c.outgoing(ctx), c.publisher.Plan, req, merge(whole)); err != nil {
		return nil, c.failed("plan", "", err)
	}
	return whole, nil
}

// ListTables returns the tables that weft has in the kernel, and the last
// revision.
//
// Possible errors: ErrPermission, ErrLimit, ErrUnavailable, ErrClosed,
// errors.ErrUnsupported (an older aggregator), ctx's.
func (c *Client) ListTables(ctx context.Context) (*weftv1.ListTablesResponse, error) {
	whole := &weftv1.ListTablesResponse{}
	if err := collect(c.outgoing(ctx), c.inspect.ListTables, &weftv1.ListTablesRequest{}, merge(whole)); err != nil {
		return nil, c.failed("list tables", "", err)
	}
	return whole, nil
}

// GetTable returns the merged content of one table: of all fragments together.
//
// Possible errors: ErrNotFound, ErrInvalid, ErrPermission, ErrLimit,
// ErrUnavailable, ErrClosed, errors.ErrUnsupported (an older aggregator), ctx's.
func (c *Client) GetTable(ctx context.Context, req *weftv1.GetTableRequest) (*weftv1.GetTableResponse, error) {
	whole := &weftv1.GetTableResponse{}
	if err := collect(c.outgoing(ctx), c.inspect.GetTable, req, whole.Join); err != nil {
		return nil, c.failed("get table "+req.GetFamily()+" "+req.GetName(), "", err)
	}
	return whole, nil
}

// ListPublishers returns the publishers that have fragments or are connected.
//
// Possible errors: ErrPermission, ErrLimit, ErrUnavailable, ErrClosed,
// errors.ErrUnsupported (an older aggregator), ctx's.
func (c *Client) ListPublishers(ctx context.Context) (*weftv1.ListPublishersResponse, error) {
	whole := &weftv1.ListPublishersResponse{}
	if err := collect(c.outgoing(ctx), c.inspect.ListPublishers, &weftv1.ListPublishersRequest{}, merge(whole)); err != nil {
		return nil, c.failed("list publishers", "", err)
	}
	return whole, nil
}

// Owner returns the fragments that an object of the kernel comes from: a rule,
// an element, or a table, chain or set.
//
// Possible errors: ErrNotFound, ErrInvalid, ErrPermission, ErrLimit,
// ErrUnavailable, ErrClosed, errors.ErrUnsupported (an older aggregator), ctx's.
func (c *Client) Owner(ctx context.Context, req *weftv1.OwnerRequest) (*weftv1.OwnerResponse, error) {
	resp, err := c.inspect.Owner(c.outgoing(ctx), req)
	if err != nil {
		return nil, c.failed("find the owner of "+req.GetObject().Text(), "", err)
	}
	return resp, nil
}

// collect calls a method that returns one answer in parts and hands each part to
// join.
func collect[Req, Resp any](ctx context.Context, call func(context.Context, *Req, ...grpc.CallOption) (grpc.ServerStreamingClient[Resp], error), req *Req, join func(*Resp)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := call(ctx, req)
	if err != nil {
		return err
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		join(part)
	}
}

// merge joins parts of an answer whose repeated fields are lists.
func merge[M proto.Message](whole M) func(M) {
	return func(part M) { proto.Merge(whole, part) }
}
