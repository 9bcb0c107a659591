package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Apply replaces a fragment and returns its revision. A large fragment is sent in parts over its
// own stream. LIFETIME_SESSION needs a Session instead. If ctx ends, or the aggregator stops, the
// fragment may still be committed: apply it again.
//
// Possible errors: *RejectedError, ErrUnavailable, ErrPermission, ErrLimit, ErrTooLarge,
// ErrInvalid, ErrClosed, ctx's.
func (c *Client) Apply(ctx context.Context, f *weftv1.Fragment) (revision uint64, err error) {
	if parts(f) > 1 && f.GetLifetime() != weftv1.Lifetime_LIFETIME_SESSION {
		return c.applyLarge(ctx, f)
	}
	req := &weftv1.ApplyRequest{Fragment: f}
	if err := checkSize(proto.Size(req)); err != nil {
		return 0, fmt.Errorf("apply %s: %w", f.GetName(), err)
	}
	resp, err := call(ctx, c, "apply "+f.GetName(), f.GetName(), c.publisher.Apply, req)
	return resp.GetRevision(), err
}

// ApplyUnconfirmed is Apply, but the aggregator reverts the fragment after a time from 1s to 24h
// unless Confirm is called first. It returns the time of the revert.
//
// Possible errors: the errors of Apply, errors.ErrUnsupported (also without a state directory).
func (c *Client) ApplyUnconfirmed(ctx context.Context, f *weftv1.Fragment, after time.Duration) (revision uint64, at time.Time, err error) {
	req := &weftv1.ApplyRequest{Fragment: f, Confirm: durationpb.New(after)}
	if err := checkSize(proto.Size(req)); err != nil {
		return 0, at, fmt.Errorf("apply %s: %w", f.GetName(), err)
	}
	resp, err := call(ctx, c, "apply "+f.GetName(), f.GetName(), c.publisher.Apply, req)
	if err == nil && resp.GetRevertTime() == nil {
		return 0, at, fmt.Errorf("apply %s: the aggregator does not know confirmations, and the fragment stays: %w", f.GetName(), errors.ErrUnsupported)
	}
	return resp.GetRevision(), resp.GetRevertTime().AsTime(), err
}

// Confirm keeps a fragment that waits for a confirmation, or reverts it now, and returns the last
// revision. An empty publisher means the caller.
//
// Possible errors: ErrNotFound (it does not wait), *RejectedError (it is being reverted),
// ErrUnavailable (the state directory cannot be written), ErrPermission, ErrClosed,
// errors.ErrUnsupported, ctx's.
func (c *Client) Confirm(ctx context.Context, publisher, fragment string, revert bool) (revision uint64, err error) {
	req := &weftv1.ConfirmRequest{Fragment: &weftv1.FragmentName{Publisher: publisher, Name: fragment}, Revert: revert}
	resp, err := call(ctx, c, "confirm "+fragment, fragment, c.publisher.Confirm, req)
	return resp.GetRevision(), err
}

func (c *Client) applyLarge(ctx context.Context, f *weftv1.Fragment) (revision uint64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		if err != nil {
			err = c.failed("apply "+f.GetName(), f.GetName(), err)
		}
	}()
	stream, err := c.publisher.Publish(c.outgoing(ctx))
	if err != nil {
		return 0, err
	}
	for _, part := range split(f, 1) {
		if err := stream.Send(part); errors.Is(err, io.EOF) {
			break // the reason is to be received
		} else if err != nil {
			return 0, err
		}
	}
	resp, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	if r := resp.GetRejected(); r != nil {
		err = &RejectedError{Fragment: f.GetName(), Violations: r.GetViolations()}
	}
	return resp.GetCommitted().GetRevision(), err
}

// Delete withdraws a fragment and returns the revision of the removal. An empty publisher means the
// caller.
//
// Possible errors: *RejectedError (the fragment is still referred to), ErrNotFound, ErrPermission,
// ErrLimit, ErrInvalid, ErrUnavailable, ErrClosed, ctx's.
func (c *Client) Delete(ctx context.Context, publisher, fragment string) (revision uint64, err error) {
	req := &weftv1.DeleteRequest{Fragment: &weftv1.FragmentName{Publisher: publisher, Name: fragment}}
	resp, err := call(ctx, c, "delete "+fragment, fragment, c.publisher.Delete, req)
	return resp.GetRevision(), err
}

// Get returns a fragment's committed content and status. An empty publisher means the caller.
//
// Possible errors: the errors of Delete, except *RejectedError.
func (c *Client) Get(ctx context.Context, publisher, fragment string) (*weftv1.GetFragmentResponse, error) {
	req := &weftv1.GetFragmentRequest{Fragment: &weftv1.FragmentName{Publisher: publisher, Name: fragment}}
	return read(ctx, c, "get "+fragment, fragment, c.inspect.GetFragment, req, (*weftv1.GetFragmentResponse).Join)
}

// List returns the status of all fragments and the last revision.
//
// Possible errors: ErrPermission, ErrLimit, ErrUnavailable, ErrClosed, ctx's.
func (c *Client) List(ctx context.Context) (*weftv1.ListFragmentsResponse, error) {
	return read(ctx, c, "list fragments", "", c.inspect.ListFragments, &weftv1.ListFragmentsRequest{}, merge)
}

// Watch calls f with each event from now on. It returns nil if ctx ends after the stream was
// opened.
//
// Possible errors: f's, ErrPermission, ErrUnavailable (also after a lost connection), ErrClosed,
// ErrLimit (the caller is too slow, or has too many streams).
func (c *Client) Watch(ctx context.Context, f func(*weftv1.WatchResponse) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.inspect.Watch(c.outgoing(ctx), &weftv1.WatchRequest{})
	if err != nil {
		return c.failed("watch", "", err)
	}
	for {
		ev, err := stream.Recv()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, io.EOF) {
				err = errEnded
			}
			return c.failed("watch", "", err)
		}
		if err := f(ev); err != nil {
			return err
		}
	}
}
