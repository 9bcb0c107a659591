package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"

	"github.com/weft-proxy/weft/aggregator/access"
)

// errPanic is a handler that panicked.
var errPanic = errors.New("internal error: the handler panicked, see the aggregator's log")

// interceptor checks every call, also of reflection and health.
type interceptor struct {
	access  *access.Control
	pacer   *pacer
	streams *streams
	log     *slog.Logger
}

// rescue turns a panic into an error: one bad call must not end the daemon.
func rescue(log *slog.Logger, method string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	log.Error("handler panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = errPanic
}

// finish reports the outcome of a call, and turns its error into a status.
func (c *caller) finish(method string, err *error) {
	c.report(method, *err)
	*err = toStatus(*err)
}

func (i *interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	method := info.FullMethod
	c, err := i.authorize(ctx)
	defer c.finish(method, &err)
	defer rescue(i.log, method, &err)
	if err == nil && updates[method] {
		err = i.pacer.wait(ctx, c.publisher, patience)
	}
	if err != nil {
		return nil, err
	}
	return handler(withCaller(ctx, c), req)
}

func (i *interceptor) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	method := info.FullMethod
	c, err := i.authorize(ss.Context())
	defer c.finish(method, &err)
	if err != nil {
		return err
	}
	o, err := i.streams.add(c, method)
	if err != nil {
		return err
	}
	defer i.streams.remove(o)
	ctx, cancel := context.WithCancel(withCaller(ss.Context(), c))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer rescue(i.log, method, &err)
		err = handler(srv, &calledStream{ServerStream: ss, ctx: ctx})
	}()
	select {
	case err = <-done:
		return err
	case err = <-o.lost:
		// The handler ends by itself: its context does, and gRPC ends the
		// stream when this returns.
		return err
	}
}

// calledStream is a stream whose context has the caller. A stream's context is
// the one that gRPC allows to be replaced in this way alone.
type calledStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // see above
}

// Context returns the context with the caller.
func (s *calledStream) Context() context.Context { return s.ctx }
