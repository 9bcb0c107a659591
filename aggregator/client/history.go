package client

import (
	"context"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// ListRevisions returns the recorded revisions, the newest first.
//
// Possible errors: ErrPermission, ErrLimit, ErrUnavailable, ErrClosed, errors.ErrUnsupported (also
// without a recorded history), ctx's.
func (c *Client) ListRevisions(ctx context.Context, req *weftv1.ListRevisionsRequest) (*weftv1.ListRevisionsResponse, error) {
	return read(ctx, c, "list revisions", "", c.history.ListRevisions, req, merge)
}

// CompareRevisions returns the fragments changed after one revision, up to another, with their
// content at both. If to is 0, it is the last revision.
//
// Possible errors: the errors of ListRevisions, ErrNotFound (a revision is forgotten or does not
// exist yet).
func (c *Client) CompareRevisions(ctx context.Context, from, to uint64) (*weftv1.CompareRevisionsResponse, error) {
	return read(ctx, c, "compare revisions", "", c.history.CompareRevisions, &weftv1.CompareRevisionsRequest{From: from, To: to}, (*weftv1.CompareRevisionsResponse).Join)
}
