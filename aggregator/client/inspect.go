package client

import (
	"context"
	"fmt"

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
	resp, err := c.api.Plan(c.outgoing(ctx), req)
	if err != nil {
		return nil, c.failed("plan", "", err)
	}
	return resp, nil
}

// ListTables returns the tables that weft has in the kernel, and the last
// revision.
//
// Possible errors: ErrPermission, ErrLimit, ErrUnavailable, ErrClosed,
// errors.ErrUnsupported (an older aggregator), ctx's.
func (c *Client) ListTables(ctx context.Context) (*weftv1.ListTablesResponse, error) {
	resp, err := c.api.ListTables(c.outgoing(ctx), &weftv1.ListTablesRequest{})
	if err != nil {
		return nil, c.failed("list tables", "", err)
	}
	return resp, nil
}

// GetTable returns the merged content of one table: of all fragments together.
// Terse leaves out the elements of sets and maps.
//
// Possible errors: ErrNotFound, ErrInvalid, ErrPermission, ErrLimit,
// ErrUnavailable, ErrClosed, errors.ErrUnsupported (an older aggregator), ctx's.
func (c *Client) GetTable(ctx context.Context, family, name string, terse bool) (*weftv1.GetTableResponse, error) {
	resp, err := c.api.GetTable(c.outgoing(ctx), &weftv1.GetTableRequest{Family: family, Name: name, Terse: terse})
	if err != nil {
		return nil, c.failed("get table "+family+" "+name, "", err)
	}
	return resp, nil
}

// ListPublishers returns who has fragments or is connected.
//
// Possible errors: ErrPermission, ErrLimit, ErrUnavailable, ErrClosed,
// errors.ErrUnsupported (an older aggregator), ctx's.
func (c *Client) ListPublishers(ctx context.Context) (*weftv1.ListPublishersResponse, error) {
	resp, err := c.api.ListPublishers(c.outgoing(ctx), &weftv1.ListPublishersRequest{})
	if err != nil {
		return nil, c.failed("list publishers", "", err)
	}
	return resp, nil
}

// Owner returns the fragments that an object of the kernel comes from: a rule,
// an element, or a table, chain or set.
//
// Possible errors: ErrNotFound, ErrInvalid, ErrPermission, ErrLimit,
// ErrUnavailable, ErrClosed, errors.ErrUnsupported (an older aggregator), ctx's.
func (c *Client) Owner(ctx context.Context, req *weftv1.OwnerRequest) (*weftv1.OwnerResponse, error) {
	resp, err := c.api.Owner(c.outgoing(ctx), req)
	if err != nil {
		return nil, c.failed("find the owner in table "+req.GetFamily()+" "+req.GetTable(), "", err)
	}
	return resp, nil
}
