package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// logBuffer collects log lines.
type logBuffer struct{ strings.Builder }

func newInterceptor(log *logBuffer, uid uint32) *interceptor {
	l := slog.New(slog.NewTextHandler(log, nil))
	c, err := access.Open(access.Options{Logger: l, Self: &uid})
	if err != nil {
		panic(err)
	}
	return &interceptor{access: c, pacer: newPacer(c), streams: newStreams(c), log: l}
}

// from is a context of a call by a peer.
func from(p access.Peer) context.Context {
	return peer.NewContext(context.Background(), &peer.Peer{Addr: &net.UnixAddr{}, AuthInfo: AuthInfo{Peer: p}})
}

func TestAuthorization(t *testing.T) {
	var log logBuffer
	in := newInterceptor(&log, 1000)
	const method = "/weft.v1.Inspect/ListFragments"
	call := func(ctx context.Context) (got caller, err error) {
		ctx, err = in.tap(ctx, &tap.Info{FullMethodName: method})
		if err != nil {
			return caller{}, err
		}
		_, err = in.unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, _ any) (any, error) {
			got = callerFrom(ctx)
			return struct{}{}, nil
		})
		return got, err
	}
	for _, uid := range []uint32{0, 1000} {
		c, err := call(from(access.Peer{PID: 7, UID: uid}))
		if err != nil || c.PID != 7 || c.publisher == "" {
			t.Errorf("uid %d: caller %+v, error %v", uid, c, err)
		}
	}
	_, err := call(from(access.Peer{PID: 4711, UID: 1001}))
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(log.String(), "pid=4711") || !strings.Contains(log.String(), "uid=1001") {
		t.Errorf("uid 1001: error %v, log %q", err, log.String())
	}
	if _, err := call(context.Background()); status.Code(err) != codes.Unauthenticated {
		t.Errorf("no peer: %v", err)
	}
	named := metadata.NewIncomingContext(from(access.Peer{}), metadata.Pairs(PublisherKey, "policy"))
	if c, err := call(named); err != nil || c.publisher != "policy" {
		t.Errorf("named: caller %+v, error %v", c, err)
	}
}

// TestRequestThatDoesNotArrive has a call end whose request is not complete, and a
// call go on whose request is.
func TestRequestThatDoesNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		in := newInterceptor(&log, 0)
		ctx, cancel := context.WithCancel(from(access.Peer{}))
		defer cancel()
		slow, err := in.tap(ctx, &tap.Info{FullMethodName: "/weft.v1.Publisher/Apply"})
		if err != nil {
			t.Fatal(err)
		}
		complete, err := in.tap(ctx, &tap.Info{FullMethodName: "/weft.v1.Publisher/Apply"})
		if err != nil {
			t.Fatal(err)
		}
		callerFrom(complete).request.arrived()
		stream, err := in.tap(ctx, &tap.Info{FullMethodName: weftv1.Publisher_Publish_FullMethodName})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(receiveTimeout - time.Second)
		if slow.Err() != nil {
			t.Errorf("a second before the end: %v", slow.Err())
		}
		<-time.After(2 * time.Second)
		if !errors.Is(slow.Err(), context.DeadlineExceeded) {
			t.Errorf("a request that has not arrived: error %v: want DeadlineExceeded", slow.Err())
		}
		if err := errors.Join(complete.Err(), stream.Err()); err != nil {
			t.Errorf("a request that has arrived, and a stream: %v", err)
		}
	})
}

func TestPanicIsInternal(t *testing.T) {
	var log logBuffer
	in := newInterceptor(&log, 0)
	ctx, err := in.tap(from(access.Peer{}), &tap.Info{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = in.unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/weft.v1.Inspect/GetFragment"}, func(context.Context, any) (any, error) {
		panic("boom")
	})
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") || !strings.Contains(log.String(), "boom") {
		t.Errorf("unary: error %v, log %q", err, log.String())
	}
	err = in.stream(nil, fakeStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: "/weft.v1.Inspect/Watch"}, func(any, grpc.ServerStream) error {
		panic("bang")
	})
	if status.Code(err) != codes.Internal || !strings.Contains(log.String(), "bang") {
		t.Errorf("stream: error %v", err)
	}
}

type fakeStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a fake of one that has it
}

func (s fakeStream) Context() context.Context { return s.ctx }
