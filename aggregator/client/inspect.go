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

// Plan returns the changes and rejections that a commit of the request's fragments would bring,
// without a change.
//
// Possible errors: the errors of ListTables, ErrTooLarge (the request needs more than one message),
// ErrInvalid.
func (c *Client) Plan(ctx context.Context, req *weftv1.PlanRequest) (*weftv1.PlanResponse, error) {
	text, err := c.text(ctx)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", fromStatus("", err))
	}
	if text != nil {
		if req, err = planText(text, req); err != nil {
			return nil, fmt.Errorf("plan: %w: %w", ErrInvalid, err)
		}
	}
	if err := checkSize(proto.Size(req)); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return read(ctx, c, "plan", "", c.publisher.Plan, req, merge)
}

// ListTables returns weft's tables in the kernel and the last revision.
//
// Possible errors: ErrPermission, ErrLimit, ErrUnavailable, ErrClosed, errors.ErrUnsupported,
// ctx's.
func (c *Client) ListTables(ctx context.Context) (*weftv1.ListTablesResponse, error) {
	return read(ctx, c, "list tables", "", c.inspect.ListTables, &weftv1.ListTablesRequest{}, merge)
}

// GetTable returns the content of a table, merged from all fragments. An empty family means ip.
//
// Possible errors: the errors of ListTables, ErrNotFound, ErrInvalid.
func (c *Client) GetTable(ctx context.Context, req *weftv1.GetTableRequest) (*weftv1.GetTableResponse, error) {
	return read(ctx, c, "get table "+req.GetFamily()+" "+req.GetName(), "", c.inspect.GetTable, req, (*weftv1.GetTableResponse).Join)
}

// ListPublishers returns the publishers with fragments or connections.
//
// Possible errors: the errors of ListTables.
func (c *Client) ListPublishers(ctx context.Context) (*weftv1.ListPublishersResponse, error) {
	return read(ctx, c, "list publishers", "", c.inspect.ListPublishers, &weftv1.ListPublishersRequest{}, merge)
}

// Owner returns the source fragments of a rule, an element, a table, a chain or a set in the
// kernel.
//
// Possible errors: the errors of GetTable.
func (c *Client) Owner(ctx context.Context, req *weftv1.OwnerRequest) (*weftv1.OwnerResponse, error) {
	return call(ctx, c, "find the owner of "+req.GetObject().Text(), "", c.inspect.Owner, req)
}

func call[Req, Resp any](ctx context.Context, c *Client, what, fragment string,
	method func(context.Context, *Req, ...grpc.CallOption) (*Resp, error), req *Req,
) (*Resp, error) {
	resp, err := method(c.outgoing(ctx), req)
	if err != nil {
		return nil, c.failed(what, fragment, err)
	}
	return resp, nil
}

func read[Req, Resp any](ctx context.Context, c *Client, what, fragment string,
	call func(context.Context, *Req, ...grpc.CallOption) (grpc.ServerStreamingClient[Resp], error), req *Req, join func(whole, part *Resp),
) (*Resp, error) {
	whole := new(Resp)
	err := each(ctx, c, what, fragment, call, req, func(part *Resp) error { join(whole, part); return nil })
	if err != nil {
		return nil, err
	}
	return whole, nil
}

func each[Req, Resp any](ctx context.Context, c *Client, what, fragment string,
	call func(context.Context, *Req, ...grpc.CallOption) (grpc.ServerStreamingClient[Resp], error), req *Req, f func(part *Resp) error,
) error {
	ctx, cancel := context.WithCancel(c.outgoing(ctx))
	defer cancel()
	stream, err := call(ctx, req)
	for err == nil {
		var part *Resp
		if part, err = stream.Recv(); err == nil {
			if err := f(part); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return c.failed(what, fragment, err)
}

func merge[T any, M interface {
	*T
	proto.Message
}](whole, part *T) {
	proto.Merge(M(whole), M(part))
}
