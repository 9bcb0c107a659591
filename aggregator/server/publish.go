package server

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// maxInFlight is the number of a stream's updates waiting for acknowledgement. At this number the
// stream is not read.
const maxInFlight = 256

type publishStream = grpc.BidiStreamingServer[weftv1.PublishRequest, weftv1.PublishResponse]

func (s *service) Publish(stream publishStream) error {
	c := callerFrom(stream.Context())
	session, err := s.agg.Session(c.Publisher, c.PID, c.UID)
	if err != nil {
		return err
	}
	// The stream is accepted.
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		session.Close()
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	session.DropAfter(ctx)
	f := newInFlight(c, s.partial)
	acks := make(chan ack, maxInFlight)
	admitted, sent := make(chan error, 1), make(chan error, 1)
	go func() {
		// This goroutine owns the session.
		defer f.close()
		defer session.Close()
		err := s.admit(ctx, stream, session, acks, f)
		admitted <- err
		if err == nil || errors.Is(err, aggregator.ErrStopped) {
			finish(ctx, acks)
		}
	}()
	go func() { sent <- sendAcks(ctx, stream, acks, f) }()
	select {
	case err = <-admitted:
		if err != nil && !errors.Is(err, aggregator.ErrStopped) {
			// The client does not wait for updates in flight.
			return err
		}
	case err := <-sent:
		// sendAcks ends first only on an error. gRPC then ends receiving.
		return err
	case <-s.agg.Stopped():
		// All updates are answered. Later ones are refused.
		err = aggregator.ErrStopped
		finish(ctx, acks)
	}
	if serr := <-sent; err == nil {
		err = serr
	}
	return err
}

func finish(ctx context.Context, acks chan<- ack) {
	select {
	case acks <- ack{}:
	case <-ctx.Done():
	}
}

// ack is an update to acknowledge. The last ack has no result.
type ack struct {
	id     uint64
	result <-chan aggregator.Result
	size   int
}

// admit returns nil after the client's last message.
func (s *service) admit(ctx context.Context, stream publishStream, session *aggregator.Session, acks chan<- ack, f *inFlight) (err error) {
	defer rescue(s.log, "Publish", &err)
	for begins := true; ; {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if begins {
			if err := s.pacer.wait(ctx, callerFrom(ctx).Publisher, forever); err != nil {
				return err
			}
		}
		push := callerFrom(ctx).request
		size, err := f.receive(ctx, push.size, req.GetMore() && req.GetSnapshot() != nil)
		if err != nil {
			return err
		}
		result, err := session.PushTooLarge(req, push.tooLarge)
		push.admitted()
		if err != nil {
			return err
		}
		begins = result != nil
		if result == nil {
			continue
		}
		select {
		case acks <- ack{req.GetId(), result, size}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func sendAcks(ctx context.Context, stream publishStream, acks <-chan ack, f *inFlight) error {
	for {
		var a ack
		select {
		case a = <-acks:
		case <-ctx.Done():
			return ctx.Err()
		}
		if a.result == nil {
			return nil
		}
		var r aggregator.Result
		select {
		case r = <-a.result:
		case <-ctx.Done():
			return ctx.Err()
		}
		f.acknowledged(a.size)
		resp := &weftv1.PublishResponse{Id: a.id}
		var rejected *aggregator.RejectedError
		switch {
		case r.Err == nil:
			resp.Result = &weftv1.PublishResponse_Committed{Committed: &weftv1.Committed{Revision: r.Revision}}
		case errors.As(r.Err, &rejected):
			callerFrom(ctx).report(weftv1.Publisher_Publish_FullMethodName, rejected)
			resp.Result = &weftv1.PublishResponse_Rejected{Rejected: &weftv1.Rejected{Violations: rejected.Violations}}
		default:
			return r.Err
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}
