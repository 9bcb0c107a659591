package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers "proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

type publishStream = grpc.BidiStreamingClient[weftv1.PublishRequest, weftv1.PublishResponse]

var errEnded = fmt.Errorf("%w: the aggregator ended the stream", ErrUnavailable)

// serve sends queued messages until the stream ends. It calls opened for an accepted stream.
func (s *Session) serve(ctx context.Context, opened func()) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := s.client.streams.Publish(ctx, grpc.WaitForReady(true), grpc.ForceCodecV2(encodedCodec{encoding.GetCodecV2("proto")}))
	if err != nil {
		cancel()
		return streamError(s.client, err)
	}
	broken := make(chan struct{}) // closed when receiveErr is set
	var receiveErr error
	go func() {
		defer close(broken)
		receiveErr = s.receive(stream, opened)
	}()
	// receive returns before the next stream starts: it must not take the answers of another
	// stream.
	defer func() {
		s.outbox.use(nil, false)
		cancel()
		<-broken
	}()
	text, err := s.client.text(ctx)
	if err != nil {
		return streamError(s.client, err)
	}
	s.sending.Lock()
	s.text = text
	s.sending.Unlock()
	s.outbox.use(nil, true)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := s.flush(stream); err != nil {
			// Only the first parts of an update are sent: begin anew. Otherwise the reason is still
			// to be received.
			if isUnsendable(err) {
				return fmt.Errorf("%w: half of %w", ErrUnavailable, err)
			}
			<-broken
			return receiveErr
		}
		if next := s.outbox.due(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-broken:
			return receiveErr
		case <-s.outbox.wake:
		case <-timer.C:
		}
	}
}

func (s *Session) flush(stream publishStream) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	for m := s.outbox.next(time.Now()); m != nil; m = s.outbox.next(time.Now()) {
		if err := s.send(stream, m); err != nil {
			return err
		}
	}
	s.outbox.use(stream, true)
	return nil
}

func streamError(c *Client, err error) error {
	switch {
	case c.conn.GetState() == connectivity.Shutdown:
		return ErrClosed
	case errors.Is(err, io.EOF):
		return errEnded
	case status.Code(err) == codes.Canceled:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return fromStatus("", err)
	}
}

// send returns an error for a broken stream, or if only the first parts of an update were sent. A
// message of which no part can be sent is answered instead.
func (s *Session) send(stream publishStream, m *message) error {
	var requests []*weftv1.PublishRequest
	switch f, err := m.snapshot(); {
	case err != nil:
		s.outcome(m.id, 0, err)
		return nil
	case f != nil:
		if sent, err := s.sendDifference(stream, m, f); sent {
			return err
		}
		requests = split(f, m.id)
	case m.patch != nil:
		requests = []*weftv1.PublishRequest{{Id: m.id, Update: &weftv1.PublishRequest_Patch{Patch: m.patch}}}
	default:
		requests = []*weftv1.PublishRequest{{Id: m.id, Update: &weftv1.PublishRequest_Withdraw{Withdraw: m.name}}}
	}
	for i, req := range requests {
		err := s.transmit(stream, req)
		if isUnsendable(err) {
			s.outcome(m.id, 0, fmt.Errorf("publish %s: %w", m.name, err))
			if i == 0 {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshot returns nil for a patch or a withdrawal.
func (m *message) snapshot() (*weftv1.Fragment, error) {
	if !m.whole() || m.content == nil {
		return nil, nil //nolint:nilnil // see above
	}
	f := m.content.Fragment()
	switch {
	case f == nil:
		return nil, fmt.Errorf("publish %s: %w", m.name, ErrNoSnapshot)
	case f.GetName() != m.name:
		return nil, &unsendableError{fmt.Errorf("publish %s: %w: the snapshot is of fragment %q", m.name, ErrInvalid, f.GetName())}
	}
	return f, nil
}

// sendDifference reports false if a snapshot is required.
func (s *Session) sendDifference(stream publishStream, m *message, f *weftv1.Fragment) (sent bool, err error) {
	if m.before == nil {
		return false, nil
	}
	before := m.before.Fragment()
	if before == nil {
		return false, nil
	}
	p, ok := diff(before, f)
	if !ok {
		return false, nil
	}
	revision := s.outbox.setPatch(m, p)
	if p == nil {
		s.outcome(m.id, revision, nil)
		return true, nil
	}
	err = s.transmit(stream, &weftv1.PublishRequest{Id: m.id, Update: &weftv1.PublishRequest_Patch{Patch: p}})
	if isUnsendable(err) {
		// The snapshot goes in parts, or reports the error.
		s.outbox.setPatch(m, nil)
		return false, nil
	}
	return true, err
}

// unsendableError is the error of a request that never reached the stream.
type unsendableError struct{ err error }

func (e *unsendableError) Error() string { return e.err.Error() }
func (e *unsendableError) Unwrap() error { return e.err }

func isUnsendable(err error) bool {
	unsendable := (*unsendableError)(nil)
	return errors.As(err, &unsendable)
}

// transmit encodes first, because gRPC ends the stream if encoding fails.
//
// Possible errors: *unsendableError (ErrTooLarge, ErrInvalid), the stream's.
func (s *Session) transmit(stream publishStream, req *weftv1.PublishRequest) (err error) {
	if s.text != nil {
		if req, err = s.text(req); err != nil {
			return &unsendableError{fmt.Errorf("%w: %w", ErrInvalid, err)}
		}
	}
	m, err := proto.Marshal(req)
	if err != nil {
		return &unsendableError{fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	if err := checkSize(len(m)); err != nil {
		return &unsendableError{err}
	}
	return stream.SendMsg(mem.BufferSlice{mem.SliceBuffer(m)})
}

// encodedCodec passes encoded messages on.
type encodedCodec struct{ encoding.CodecV2 }

func (c encodedCodec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(mem.BufferSlice); ok {
		return m, nil
	}
	return c.CodecV2.Marshal(v)
}

func (s *Session) receive(stream publishStream, opened func()) error {
	// Without a header there is a status to receive.
	if header, err := stream.Header(); err == nil && header != nil {
		opened()
	}
	for {
		resp, err := stream.Recv()
		if err != nil {
			return streamError(s.client, err)
		}
		var rejection error
		if r := resp.GetRejected(); r != nil {
			rejection = &RejectedError{Violations: r.GetViolations()}
		}
		s.outcome(resp.GetId(), resp.GetCommitted().GetRevision(), rejection)
	}
}
