package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

var errMalformed = errors.New("the request cannot be decoded")

var errPanic = errors.New("internal error: the handler panicked, see the aggregator's log")

const receiveTimeout = 30 * time.Second

// interceptor checks every call, including reflection and health.
type interceptor struct {
	access  *access.Control
	streams *streams
	decoder *decoder
	turns   map[string]callTurns
	log     *slog.Logger
}

var errSlow = fmt.Errorf("%w: the request did not arrive within %v", context.DeadlineExceeded, receiveTimeout)

func rescue(log *slog.Logger, method string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	log.Error("handler panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = errPanic
}

func (c caller) finish(method string, err *error) {
	c.report(method, *err)
	*err = toStatus(*err)
}

// call authorizes a call before any message is received, and handles it. A tap.ServerInHandle could
// refuse earlier, but gRPC 1.85 then keeps the timer of the call's deadline.
func (i *interceptor) call(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	method := info.FullMethod
	c, err := i.authorize(ss.Context())
	defer func() { c.finish(method, &err) }()
	if err == nil {
		err = c.mayCall(method)
	}
	if t := i.turns[method]; err == nil && t.Turns != nil && (t.administrators || !c.Admin) {
		c.turn, err = t.Enter("publisher " + c.Publisher)
	}
	if err != nil {
		return err
	}
	c.unread = unreadFrom(ss.Context())
	c.request = newRequest(c.turn == nil && method != weftv1.Publisher_Publish_FullMethodName)
	defer c.request.end()
	o := &openStream{}
	if info.IsClientStream || info.IsServerStream {
		if o, err = i.streams.add(c, method); err != nil {
			if c.turn != nil {
				c.turn.Leave()
			}
			return err
		}
		defer i.streams.remove(o)
	}
	ctx, cancel := context.WithCancel(withCaller(ss.Context(), c))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer rescue(i.log, method, &err)
		defer c.request.end()
		if c.turn != nil {
			defer c.turn.Leave()
			if err = c.await(ctx); err != nil {
				return
			}
		}
		err = handler(srv, &calledStream{ServerStream: ss, ctx: ctx, decoder: i.decoder})
	}()
	// A handler still running ends with its context.
	select {
	case err = <-done:
		return err
	case err = <-o.lost:
		return err
	case err = <-c.unread.limit():
		return err
	case <-c.request.late.C:
		return errSlow
	}
}

// calledStream replaces the context of its stream: gRPC has no other way.
type calledStream struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // see above
	decoder *decoder
}

func (s *calledStream) Context() context.Context { return s.ctx }

func (s *calledStream) RecvMsg(m any) error {
	return s.decoder.decode(s.ctx, m.(proto.Message), s.ServerStream.RecvMsg) //nolint:forcetypeassert // requests are
}
