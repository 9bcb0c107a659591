package server

import (
	"cmp"
	"context"
	"io"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Local is a connection to the Server with this Local in its Config, for publishers in the same
// process. It has only the call Publisher.Publish, with the checks of the socket, and takes encoded
// requests, as a mem.BufferSlice. It must not be used before Listen returns.
type Local struct {
	in   *interceptor
	impl *service
}

// Invoke refuses all calls.
func (l *Local) Invoke(_ context.Context, method string, _, _ any, _ ...grpc.CallOption) error {
	return status.Error(codes.Unimplemented, method+" is for the socket")
}

// NewStream implements grpc.ClientConnInterface.
func (l *Local) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	if method != weftv1.Publisher_Publish_FullMethodName {
		return nil, l.Invoke(ctx, method, nil, nil)
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	self := access.Peer{PID: int32(os.Getpid()), UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), NetAdmin: true} //nolint:gosec // the kernel's types
	s := &localStream{
		ctx: peer.NewContext(metadata.NewIncomingContext(ctx, md), &peer.Peer{AuthInfo: AuthInfo{Peer: self}}),
		// As on a socket, a sender need not wait until the message is read.
		requests: make(chan mem.BufferSlice, 1), responses: make(chan *weftv1.PublishResponse, maxInFlight),
		accepted: make(chan struct{}), ended: make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		s.err = l.in.call(l.impl, localServer{localStream: s}, &grpc.StreamServerInfo{FullMethod: method, IsClientStream: true, IsServerStream: true}, weftv1.Publisher_ServiceDesc.Streams[0].Handler)
	}()
	return localClient{localStream: s}, nil
}

type localStream struct {
	ctx       context.Context //nolint:containedctx // that of a stream
	requests  chan mem.BufferSlice
	responses chan *weftv1.PublishResponse
	// accepted is closed with the header, ended when err is set
	accepted, ended chan struct{}
	err             error
}

type localServer struct {
	grpc.ServerStream
	*localStream
}

func (s localServer) Context() context.Context { return s.ctx }

func (s localServer) SendHeader(metadata.MD) error {
	close(s.accepted)
	return nil
}

func (s localServer) RecvMsg(m any) error {
	select {
	case b := <-s.requests:
		return requestCodec{}.Unmarshal(b, m)
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s localServer) SendMsg(m any) error {
	select {
	case s.responses <- m.(*weftv1.PublishResponse): //nolint:forcetypeassert // that of Publish
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

type localClient struct {
	grpc.ClientStream
	*localStream
}

func (s localClient) Context() context.Context { return s.ctx }

func (s localClient) Header() (metadata.MD, error) {
	select {
	case <-s.accepted:
		return metadata.MD{}, nil
	case <-s.ended:
		return nil, s.err
	}
}

func (s localClient) SendMsg(m any) error {
	select {
	case s.requests <- m.(mem.BufferSlice): //nolint:forcetypeassert // see Local
		return nil
	case <-s.ended:
		return io.EOF
	}
}

func (s localClient) RecvMsg(m any) error {
	var r *weftv1.PublishResponse
	select {
	case r = <-s.responses:
	case <-s.ended:
		select {
		case r = <-s.responses:
		default:
			return cmp.Or(s.err, io.EOF)
		}
	}
	proto.Merge(m.(proto.Message), r) //nolint:forcetypeassert // a PublishResponse
	return nil
}
