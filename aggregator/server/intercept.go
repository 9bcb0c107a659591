package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"
)

// errPanic is a handler that panicked.
var errPanic = errors.New("internal error: the handler panicked, see the aggregator's log")

// interceptor checks every call, also of reflection and health.
type interceptor struct {
	auth    *authorizer
	pacer   *pacer
	streams *streams
	// crowd counts streams; nil does not.
	crowd *crowd
	log   *slog.Logger
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

func (i *interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := i.call(ctx, req, info.FullMethod, handler)
	if err != nil {
		return nil, toStatus(err)
	}
	return resp, nil
}

func (i *interceptor) call(ctx context.Context, req any, method string, handler grpc.UnaryHandler) (resp any, err error) {
	defer rescue(i.log, method, &err)
	c, err := i.auth.authorize(ctx)
	defer func() { c.report(method, err) }()
	if err != nil {
		return nil, err
	}
	if updates[method] {
		if err := i.pacer.call(ctx, c.publisher); err != nil {
			return nil, err
		}
	}
	return handler(withCaller(ctx, c), req)
}

func (i *interceptor) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return toStatus(i.open(srv, ss, info.FullMethod, handler))
}

func (i *interceptor) open(srv any, ss grpc.ServerStream, method string, handler grpc.StreamHandler) (err error) {
	c, err := i.auth.authorize(ss.Context())
	defer func() { c.report(method, err) }()
	if err != nil {
		return err
	}
	if i.crowd != nil {
		done, err := i.crowd.stream(c.UID)
		if err != nil {
			return err
		}
		defer done()
	}
	o, err := i.streams.add(c, method)
	if err != nil {
		return err
	}
	defer i.streams.remove(o)
	ctx, cancel := context.WithCancel(withCaller(ss.Context(), c))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- i.handle(srv, &calledStream{ServerStream: ss, ctx: ctx}, method, handler) }()
	select {
	case err = <-done:
		return err
	case err = <-o.lost:
		// The handler ends by itself: its context does, and gRPC ends the
		// stream when this returns.
		return err
	}
}

func (i *interceptor) handle(srv any, ss grpc.ServerStream, method string, handler grpc.StreamHandler) (err error) {
	defer rescue(i.log, method, &err)
	return handler(srv, ss)
}

// calledStream is a stream whose context has the caller. A stream's context is
// the one that gRPC allows to be replaced in this way alone.
type calledStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // see above
}

// Context returns the context with the caller.
func (s *calledStream) Context() context.Context { return s.ctx }
