package server

import (
	"context"
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
	return &interceptor{access: c, streams: newStreams(c), log: l}
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
		err = in.call(nil, fakeStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: method}, func(_ any, ss grpc.ServerStream) error {
			got = callerFrom(ss.Context())
			return nil
		})
		return got, err
	}
	for _, p := range []access.Peer{{PID: 7, NetAdmin: true}, {PID: 7, UID: 1000}} {
		c, err := call(from(p))
		if err != nil || c.PID != 7 || c.Publisher == "" {
			t.Errorf("peer %+v: caller %+v, error %v", p, c, err)
		}
	}
	_, err := call(from(access.Peer{PID: 4711, UID: 1001}))
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(log.String(), "pid=4711") || !strings.Contains(log.String(), "uid=1001") {
		t.Errorf("uid 1001: error %v, log %q", err, log.String())
	}
	if _, err := call(context.Background()); status.Code(err) != codes.Unauthenticated {
		t.Errorf("no peer: %v", err)
	}
	named := metadata.NewIncomingContext(from(access.Peer{NetAdmin: true}), metadata.Pairs(PublisherKey, "policy"))
	if c, err := call(named); err != nil || c.Publisher != "policy" {
		t.Errorf("named: caller %+v, error %v", c, err)
	}
}

// TestRequestThatDoesNotArrive has a call end whose request is not complete, and calls go on
// whose request is, or that have many.
func TestRequestThatDoesNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBuffer
		in := newInterceptor(&log, 0)
		ctx, cancel := context.WithCancel(from(access.Peer{NetAdmin: true}))
		call := func(method string, receive bool) <-chan error {
			ended := make(chan error, 1)
			go func() {
				ended <- in.call(nil, fakeStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: method}, func(_ any, ss grpc.ServerStream) error {
					if receive {
						callerFrom(ss.Context()).request.arrived()
					}
					<-ss.Context().Done()
					return ss.Context().Err()
				})
			}()
			return ended
		}
		slow := call(weftv1.Publisher_Apply_FullMethodName, false)
		complete := call(weftv1.Publisher_Apply_FullMethodName, true)
		stream := call(weftv1.Publisher_Publish_FullMethodName, false)
		began := time.Now()
		if err := <-slow; status.Code(err) != codes.DeadlineExceeded || time.Since(began) != receiveTimeout {
			t.Errorf("a request that has not arrived: error %v after %v: want DeadlineExceeded after %v", err, time.Since(began), receiveTimeout)
		}
		<-time.After(receiveTimeout)
		select {
		case err := <-complete:
			t.Errorf("a call whose request has arrived ends: %v", err)
		case err := <-stream:
			t.Errorf("a stream ends: %v", err)
		default:
		}
		cancel()
		<-complete
		<-stream
	})
}

func TestPanicIsInternal(t *testing.T) {
	var log logBuffer
	in := newInterceptor(&log, 0)
	for _, info := range []*grpc.StreamServerInfo{
		{FullMethod: "/weft.v1.Inspect/GetFragment"},
		{FullMethod: "/weft.v1.Inspect/Watch", IsServerStream: true},
	} {
		log.Reset()
		err := in.call(nil, fakeStream{ctx: from(access.Peer{NetAdmin: true})}, info, func(any, grpc.ServerStream) error { panic("boom") })
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") || !strings.Contains(log.String(), "boom") {
			t.Errorf("%s: error %v, log %q", info.FullMethod, err, log.String())
		}
	}
}

type fakeStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a fake of one that has it
}

func (s fakeStream) Context() context.Context { return s.ctx }
