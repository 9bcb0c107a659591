package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Stream is one bare Publish stream, for a publisher that does its own resync:
// it ends with its connection. Most want a Session.
//
// One goroutine may send while another receives.
type Stream struct {
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse]
	cancel context.CancelFunc
}

// OpenStream opens a stream, and waits for a connection if there is none. The
// stream ends with ctx.
//
// Possible errors: ErrUnavailable (also where ctx ended), ErrPermission, ErrClosed
// (by Client.Close).
func (c *Client) OpenStream(ctx context.Context) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{conn: c.conn, cancel: cancel}
	var err error
	if s.stream, err = c.api.Publish(c.outgoing(ctx), grpc.WaitForReady(true)); err != nil {
		cancel()
		return nil, fmt.Errorf("open stream: %w", s.reason(err))
	}
	return s, nil
}

// Put sends a snapshot under the publisher's number, in parts if it is large.
//
// Possible errors: ErrTooLarge (nothing was sent); any other means that the
// stream is broken, and Recv has the reason.
func (s *Stream) Put(id uint64, f *weftv1.Fragment) error {
	for part := range split(f, id) {
		if err := sendable(part); err != nil {
			return err
		}
	}
	for part := range split(f, id) {
		if err := s.stream.Send(part); err != nil {
			return err
		}
	}
	return nil
}

// Patch sends a patch. Its errors are those of Put.
func (s *Stream) Patch(id uint64, p *weftv1.Patch) error {
	req := &weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Patch{Patch: p}}
	if err := sendable(req); err != nil {
		return err
	}
	return s.stream.Send(req)
}

// Withdraw takes a fragment away. Its errors are those of Put.
func (s *Stream) Withdraw(id uint64, name string) error {
	req := &weftv1.PublishRequest{Id: id, Update: &weftv1.PublishRequest_Withdraw{Withdraw: name}}
	if err := sendable(req); err != nil {
		return err
	}
	return s.stream.Send(req)
}

// sendable says whether a message fits: where gRPC finds out, it ends the
// stream.
func sendable(req *weftv1.PublishRequest) error {
	if n := proto.Size(req); n > MaxMessage {
		return fmt.Errorf("%w: %d bytes that can not be divided, of at most %d", ErrTooLarge, n, MaxMessage)
	}
	return nil
}

// Recv returns the next acknowledgement, in the order of the updates.
//
// Possible errors, after which the stream is over: ErrUnavailable (also where
// the connection was lost), ErrPermission, ErrTooLarge, ErrClosed.
func (s *Stream) Recv() (*weftv1.PublishResponse, error) {
	resp, err := s.stream.Recv()
	if err != nil {
		return nil, s.reason(err)
	}
	return resp, nil
}

// reason is why the stream ended.
func (s *Stream) reason(err error) error {
	switch {
	case s.conn.GetState() == connectivity.Shutdown:
		return ErrClosed
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the aggregator ended the stream", ErrUnavailable)
	case status.Code(err) == codes.Canceled:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return fromStatus("", err)
	}
}

// Close ends the stream, and with it the fragments whose lifetime is that of
// the session.
func (s *Stream) Close() { s.cancel() }
