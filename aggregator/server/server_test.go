package server_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

func start(t *testing.T, k aggregator.Kernel) (*aggregatortest.Daemon, *grpc.ClientConn) {
	t.Helper()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	return d, dial(t, d.Socket)
}

func dial(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func table() *weftv1.Fragment {
	return &weftv1.Fragment{Name: "list", Tables: []*weftv1.Table{{
		Family: "inet", Name: "demo", Sets: []*weftv1.Set{{Name: "blocked", Type: "ipv4_addr", Elements: []*weftv1.Element{{Key: "10.0.0.1"}}}},
	}}}
}

func wantCode(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), text) {
		t.Fatalf("error is %v: want code %v with %q", err, code, text)
	}
}

func TestReflectionAndHealth(t *testing.T) {
	k := &aggregatortest.Kernel{}
	k.SetOwned(&kernel.OwnedError{})
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Standby: true, Retry: time.Millisecond}})
	conn := dial(t, d.Socket)
	ctx := aggregatortest.Context(t)
	check := func() healthv1.HealthCheckResponse_ServingStatus {
		resp, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: "weft.v1.Publisher"})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStatus()
	}
	if got := check(); got != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Fatalf("health while standing by: %v", got)
	}
	aggregatortest.Eventually(t, "calls are refused while standing by", func() bool {
		_, err := newAPI(conn).Apply(ctx, &weftv1.ApplyRequest{Fragment: table()})
		return status.Code(err) == codes.Unavailable
	})
	k.SetOwned(nil)
	aggregatortest.Eventually(t, "health is SERVING", func() bool { return check() == healthv1.HealthCheckResponse_SERVING })

	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	req := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}
	if err := stream.Send(req); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range resp.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "weft.v1.Admin") || !strings.Contains(got, "weft.v1.Inspect") || !strings.Contains(got, "weft.v1.Publisher") {
		t.Fatalf("services %s", got)
	}
}

func TestPublisherName(t *testing.T) {
	k := &aggregatortest.Kernel{}
	_, conn := start(t, k)
	api := newAPI(conn)
	ctx := aggregatortest.Context(t)
	if _, err := api.Apply(ctx, &weftv1.ApplyRequest{Fragment: table()}); err != nil {
		t.Fatal(err)
	}
	list, err := api.List(ctx, &weftv1.ListFragmentsRequest{})
	if err != nil || len(list.GetFragments()) != 1 || !strings.HasPrefix(list.GetFragments()[0].GetFragment().GetPublisher(), "uid-") {
		t.Fatalf("list %v, error %v", list, err)
	}
	for _, name := range []string{"", "A", "a/b", "-a", strings.Repeat("a", 64)} {
		_, err := api.Apply(metadata.AppendToOutgoingContext(ctx, server.PublisherKey, name), &weftv1.ApplyRequest{Fragment: table()})
		wantCode(t, err, codes.InvalidArgument, "publisher name")
	}
	twice := metadata.AppendToOutgoingContext(ctx, server.PublisherKey, "a", server.PublisherKey, "b")
	_, err = api.Apply(twice, &weftv1.ApplyRequest{Fragment: table()})
	wantCode(t, err, codes.InvalidArgument, "2 times")
	for _, name := range []string{"", "List", "a b"} {
		f := table()
		f.Name = name
		_, err := api.Apply(ctx, &weftv1.ApplyRequest{Fragment: f})
		wantCode(t, err, codes.InvalidArgument, "fragment name")
	}
	_, err = api.Apply(ctx, &weftv1.ApplyRequest{})
	wantCode(t, err, codes.InvalidArgument, "fragment name is empty")
}

func TestViolationsAreDetails(t *testing.T) {
	_, conn := start(t, &aggregatortest.Kernel{})
	f := table()
	f.Tables[0].Sets[0].Elements[0].Key = "10.0.0.1.2"
	_, err := newAPI(conn).Apply(aggregatortest.Context(t), &weftv1.ApplyRequest{Fragment: f})
	wantCode(t, err, codes.InvalidArgument, "10.0.0.1.2")
	details := status.Convert(err).Details()
	if len(details) != 1 {
		t.Fatalf("details %v", details)
	}
	r, ok := details[0].(*weftv1.Rejected)
	if !ok || len(r.GetViolations()) != 1 || r.GetViolations()[0].GetObject().Text() != "element inet demo blocked { 10.0.0.1.2 }" {
		t.Fatalf("details %v", details)
	}
}

// TestTruncatedAndForeignBytes feeds bytes that are not gRPC, half of a connection, and
// messages that do not decode.
func TestTruncatedAndForeignBytes(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d, conn := start(t, k)
	ctx := aggregatortest.Context(t)
	for _, bytes := range []string{"", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x01garbage"} {
		c, err := net.Dial("unix", d.Socket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(bytes)); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// A message cut in the middle: field 1, length 100, and nothing of it.
	err := conn.Invoke(ctx, weftv1.Publisher_Apply_FullMethodName, []byte{0x0a, 100, 'x'}, &weftv1.ApplyResponse{}, grpc.ForceCodec(rawCodec{}))
	wantCode(t, err, codes.InvalidArgument, "the request cannot be decoded")
	// A snapshot whose last part never comes, and a stream that is cut off.
	sctx, cancel := context.WithCancel(ctx)
	stream, err := newAPI(conn).Publish(sctx)
	if err != nil {
		t.Fatal(err)
	}
	req := &weftv1.PublishRequest{Id: 1, More: true, Update: &weftv1.PublishRequest_Snapshot{Snapshot: table()}}
	if err := stream.Send(req); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := d.Dial(t, "tester").Apply(ctx, &weftv1.Fragment{Name: "other", Tables: table().GetTables()}); err != nil {
		t.Fatalf("the server does not go on: %v", err)
	}
	if n := len(k.Commits()); n != 1 {
		t.Fatalf("%d commits: half a snapshot must not be committed", n)
	}
	stream, err = newAPI(conn).Publish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&weftv1.PublishRequest{Id: 1}); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	wantCode(t, err, codes.InvalidArgument, "neither snapshot, patch nor withdraw")
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, errors.New("not bytes")
	}
	return b, nil
}
func (rawCodec) Unmarshal([]byte, any) error { return nil }
func (rawCodec) Name() string                { return "proto" }

func TestWatchOverTheSocket(t *testing.T) {
	d, conn := start(t, &aggregatortest.Kernel{})
	ctx := aggregatortest.Context(t)
	stream, err := newAPI(conn).Watch(ctx, &weftv1.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	c := d.Dial(t, "tester")
	rev, err := c.Apply(ctx, table())
	if err != nil {
		t.Fatal(err)
	}
	e, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	commit := e.GetCommit()
	if commit.GetRevision() != rev || len(commit.GetFragments()) != 1 || commit.GetFragments()[0].Text() != "tester/list" ||
		commit.GetChanges().GetElementsAdded() != 1 || e.GetTime() == nil {
		t.Fatalf("event %v", e)
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable, "stopped")
}
