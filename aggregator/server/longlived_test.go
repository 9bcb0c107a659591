package server

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// countingCredentials count what arrives for a publisher.
type countingCredentials struct {
	credentials.TransportCredentials
	budget *receiving
}

func (c countingCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	limited := &limitedConn{socketConn: conn.(socketConn), limits: newConnections(0, 0, nil), peer: access.Peer{}, identified: func() {}} //nolint:forcetypeassert // a Unix socket
	counted := newCountedConn(limited, c.budget, "cni", false)
	return counted, AuthInfo{conn: counted}, nil
}

// TestLongLivedStreams has a publisher open more streams than its limit has windows, each of which sends more than a window and
// then stays: gRPC grants again what its handlers have read, and nothing stays counted.
func TestLongLivedStreams(t *testing.T) {
	budget := newReceiving()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(countingCredentials{insecure.NewCredentials(), budget}), grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(connWindow), grpc.ReadBufferSize(0), grpc.InTapHandle(countCall),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			for {
				m := &weftv1.PublishRequest{}
				if err := s.RecvMsg(m); err != nil {
					return err
				}
				unreadFrom(s.Context()).received(proto.Size(m))
				if err := s.SendMsg(&weftv1.PublishResponse{Id: m.GetId()}); err != nil {
					return err
				}
			}
		}))
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { s.Stop(); <-served }()
	const streams, perConnection = maxReceivingPerPublisher/window + 100, 200
	var conn *grpc.ClientConn
	for i := range streams {
		if i%perConnection == 0 {
			if conn, err = grpc.NewClient("unix:"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/weft/Stays")
		if err != nil {
			t.Fatal(err)
		}
		for id, n := range []int{10, 70_000, 3, 1000, 40_000, 300_000, 20_000} {
			if err := stream.SendMsg(&weftv1.PublishRequest{Id: uint64(id), Update: &weftv1.PublishRequest_Withdraw{Withdraw: strings.Repeat("x", n)}}); err != nil { //nolint:gosec // an index
				t.Fatalf("stream %d, message %d: %v", i, id, err)
			}
			answer := &weftv1.PublishResponse{}
			if err := stream.RecvMsg(answer); err != nil || answer.GetId() != uint64(id) { //nolint:gosec // an index
				t.Fatalf("stream %d, message %d: %v, %v", i, id, answer, err)
			}
		}
	}
	// The clients' last window updates are received after the answers.
	total := func() int {
		budget.mu.Lock()
		defer budget.mu.Unlock()
		return budget.total
	}
	for end := time.Now().Add(time.Minute); total() != 0; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are counted of %d streams whose messages were read", total(), streams)
		}
	}
}
