package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// errMalformed is a request that cannot be decoded.
var errMalformed = errors.New("the request cannot be decoded")

// errPanic is a handler that panicked.
var errPanic = errors.New("internal error: the handler panicked, see the aggregator's log")

// receiveTimeout is how long the request of a call may take to arrive, if the call has
// only one.
const receiveTimeout = 30 * time.Second

// interceptor checks every call, also of reflection and health.
type interceptor struct {
	access  *access.Control
	pacer   *pacer
	streams *streams
	decoder *decoder
	// flowTurns are those of the calls that have turns.
	flowTurns map[string]*flowTurns
	log       *slog.Logger
}

// tap authorizes a call when its headers arrive, before any message is received. It
// implements tap.ServerInHandle.
func (i *interceptor) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := info.FullMethodName
	c, err := i.authorize(ctx)
	if err == nil {
		err = c.mayCall(method)
	}
	if turns := i.flowTurns[method]; err == nil && turns != nil {
		if c.turn, err = turns.enter(c.publisher); err == nil {
			// It may end before its handler is called.
			context.AfterFunc(ctx, c.turn.abandon)
		}
	}
	if err != nil {
		c.finish(method, &err)
		return ctx, err
	}
	c.request = &request{arrived: func() {}}
	if method != weftv1.Publisher_Publish_FullMethodName {
		limited, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(receiveTimeout, func() { cancel(errSlow) })
		c.request.arrived = func() { timer.Stop() }
		if c.turn != nil {
			// It is received when it is its turn.
			timer.Stop()
			c.request.expected = func() { timer.Reset(receiveTimeout) }
		}
		context.AfterFunc(ctx, c.request.arrived)
		ctx = limitedContext{limited}
	}
	return withCaller(ctx, c), nil
}

// errSlow is a request that did not arrive in time.
var errSlow = fmt.Errorf("%w: the request did not arrive within %v", context.DeadlineExceeded, receiveTimeout)

// limitedContext is the context of a call whose request must arrive in time.
type limitedContext struct{ context.Context } //nolint:containedctx // it is one

// Err implements context.Context.
func (c limitedContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), errSlow) {
		return context.DeadlineExceeded
	}
	return err
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
func (c caller) finish(method string, err *error) {
	c.report(method, *err)
	*err = toStatus(*err)
}

func (i *interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	method, c := info.FullMethod, callerFrom(ctx)
	defer c.finish(method, &err)
	defer rescue(i.log, method, &err)
	if updates[method] {
		if err := i.pacer.wait(ctx, c.publisher, patience); err != nil {
			return nil, err
		}
	}
	return handler(ctx, req)
}

func (i *interceptor) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	method, c := info.FullMethod, callerFrom(ss.Context())
	defer c.finish(method, &err)
	o, err := i.streams.add(c, method)
	if err != nil {
		return err
	}
	defer i.streams.remove(o)
	ctx, cancel := context.WithCancel(ss.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer rescue(i.log, method, &err)
		defer c.request.end()
		if c.turn != nil {
			defer c.turn.leave()
			if err = c.await(ctx); err != nil {
				return
			}
		}
		err = handler(srv, &calledStream{ServerStream: ss, ctx: ctx, decoder: i.decoder})
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

// calledStream is a stream whose context ends with its call. A stream's context is
// the one that gRPC allows to be replaced in this way alone.
type calledStream struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // see above
	decoder *decoder
}

// Context returns the context of the call.
func (s *calledStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *calledStream) RecvMsg(m any) error {
	return s.decoder.decode(s.ctx, m.(proto.Message), s.ServerStream.RecvMsg) //nolint:forcetypeassert // requests are
}
