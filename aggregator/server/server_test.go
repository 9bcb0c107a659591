package server_test

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
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
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/kernel"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func errorOf[T any](_ T, err error) error { return err }

func start(t *testing.T, k aggregator.Kernel) (*aggregatortest.Daemon, *grpc.ClientConn) {
	t.Helper()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	return d, dial(t, d.Socket)
}

func dial(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
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
		must(t, err)
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
	must(t, err)
	req := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}
	must(t, stream.Send(req))
	resp, err := stream.Recv()
	must(t, err)
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
	must(t, errorOf(api.Apply(ctx, &weftv1.ApplyRequest{Fragment: table()})))
	list, err := api.List(ctx, &weftv1.ListFragmentsRequest{})
	if err != nil || len(list.GetFragments()) != 1 || !strings.HasPrefix(list.GetFragments()[0].GetFragment().GetPublisher(), "uid-") {
		t.Fatalf("list %v, error %v", list, err)
	}
	for _, name := range []string{"", "A", "a/b", "-a", strings.Repeat("a", 64)} {
		wantCode(t, errorOf(api.Apply(metadata.AppendToOutgoingContext(ctx, server.PublisherKey, name), &weftv1.ApplyRequest{Fragment: table()})),
			codes.InvalidArgument, "publisher name")
	}
	twice := metadata.AppendToOutgoingContext(ctx, server.PublisherKey, "a", server.PublisherKey, "b")
	wantCode(t, errorOf(api.Apply(twice, &weftv1.ApplyRequest{Fragment: table()})), codes.InvalidArgument, "2 times")
	for _, name := range []string{"", "List", "a b"} {
		f := table()
		f.Name = name
		wantCode(t, errorOf(api.Apply(ctx, &weftv1.ApplyRequest{Fragment: f})), codes.InvalidArgument, "fragment name")
	}
	wantCode(t, errorOf(api.Apply(ctx, &weftv1.ApplyRequest{})), codes.InvalidArgument, "fragment name is empty")
}

func TestUpdateOfNothing(t *testing.T) {
	_, conn := start(t, &aggregatortest.Kernel{})
	stream, err := newAPI(conn).Publish(aggregatortest.Context(t))
	must(t, err)
	must(t, stream.Send(&weftv1.PublishRequest{Id: 1}))
	wantCode(t, errorOf(stream.Recv()), codes.InvalidArgument, "neither snapshot, patch nor withdraw")
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
	must(t, err)
	must(t, errorOf(stream.Header()))
	c := d.Dial(t, "tester")
	rev, err := c.Apply(ctx, table())
	must(t, err)
	e, err := stream.Recv()
	must(t, err)
	commit := e.GetCommit()
	if commit.GetRevision() != rev || len(commit.GetFragments()) != 1 || commit.GetFragments()[0].Text() != "tester/list" ||
		commit.GetChanges().GetElementsAdded() != 1 || e.GetTime() == nil {
		t.Fatalf("event %v", e)
	}
	must(t, d.Stop())
	wantCode(t, errorOf(stream.Recv()), codes.Unavailable, "stopped")
}

// api calls the services. Its methods that shadow those of the generated clients
// return an answer that comes in parts as a whole.
type api struct {
	weftv1.PublisherClient
	weftv1.InspectClient
	weftv1.FlowsClient
	weftv1.AdminClient
}

func newAPI(conn grpc.ClientConnInterface) api {
	return api{weftv1.NewPublisherClient(conn), weftv1.NewInspectClient(conn), weftv1.NewFlowsClient(conn), weftv1.NewAdminClient(conn)}
}

func (a api) Get(ctx context.Context, req *weftv1.GetFragmentRequest) (*weftv1.GetFragmentResponse, error) {
	whole := &weftv1.GetFragmentResponse{}
	return whole, each(ctx, a.InspectClient.GetFragment, req, whole.Join)
}

func (a api) List(ctx context.Context, req *weftv1.ListFragmentsRequest) (*weftv1.ListFragmentsResponse, error) {
	whole := &weftv1.ListFragmentsResponse{}
	return whole, each(ctx, a.InspectClient.ListFragments, req, func(part *weftv1.ListFragmentsResponse) { proto.Merge(whole, part) })
}

// each calls f with every message of a stream.
func each[Req, Resp any](ctx context.Context, call func(context.Context, *Req, ...grpc.CallOption) (grpc.ServerStreamingClient[Resp], error), req *Req, f func(*Resp)) error {
	stream, err := call(ctx, req)
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f(m)
	}
}

// TestGetInfo asks a daemon for its version and limits, and sends it a fragment of a
// newer version of the protocol.
func TestGetInfo(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Version: "v1.2.3"}})
	calls, ctx := newAPI(dial(t, d.Socket)), aggregatortest.Context(t)
	info, err := calls.GetInfo(ctx, &weftv1.GetInfoRequest{})
	if err != nil || info.GetVersion() != "v1.2.3" || info.GetKernel().GetRelease() == "" || info.GetLimits().GetMessageBytes() != server.MaxMessage {
		t.Fatalf("info %v, error %v", info, err)
	}
	if !slices.Equal(info.GetFeatures(), []string{"expiration", "live", "packed", "sets"}) {
		t.Errorf("a daemon without all that is optional has features %q", info.GetFeatures())
	}
	f := table()
	f.Tables[0].Sets[0].ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 517, protowire.VarintType), 1))
	wantCode(t, errorOf(calls.Apply(ctx, &weftv1.ApplyRequest{Fragment: f})),
		codes.InvalidArgument, "set inet demo blocked: unknown field 517; this daemon is v1.2.3: update it")
}

type noFlows struct{}

func (noFlows) Flush(context.Context, []conntrack.Stale) (int, error)           { return 0, nil }
func (noFlows) Reconcile(context.Context, []conntrack.Destination) (int, error) { return 0, nil }

// TestFeatures has a daemon with all features: PROTOCOL.md has a row for each.
func TestFeatures(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{
		Kernel: &aggregatortest.Kernel{}, StateDir: t.TempDir(), HistoryEntries: 10, HistoryBytes: 1 << 20, Flows: noFlows{},
	}, Limits: new(flowTable).use})
	info, err := newAPI(dial(t, d.Socket)).GetInfo(aggregatortest.Context(t), &weftv1.GetInfoRequest{})
	must(t, err)
	text, err := os.ReadFile("../api/v1/PROTOCOL.md")
	must(t, err)
	var want []string
	_, table, _ := strings.Cut(string(text), "| feature |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		want = append(want, row[1])
	}
	if len(want) == 0 || !slices.Equal(info.GetFeatures(), want) {
		t.Errorf("features %q, PROTOCOL.md has %q", info.GetFeatures(), want)
	}
}

// startLocal runs a daemon and connects to it within the process.
func startLocal(t *testing.T, k aggregator.Kernel, publisher string) (*aggregatortest.Daemon, *client.Client, *server.Local) {
	t.Helper()
	var local server.Local
	d := aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: k, Version: "test"}, Limits: func(c *server.Config) { c.Local = &local },
	})
	c, err := client.Dial(aggregatortest.Context(t), client.Config{Socket: d.Socket, Publisher: publisher, Local: &local})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return d, c, &local
}

func TestLocalPublishes(t *testing.T) {
	k := &aggregatortest.Kernel{}
	_, c, local := startLocal(t, k, "own")
	ctx := aggregatortest.Context(t)
	s := c.Session(client.SessionConfig{})
	must(t, errorOf(s.Put(ctx, table())))
	f := proto.CloneOf(table())
	f.Tables[0].Sets[0].Elements = append(f.Tables[0].Sets[0].Elements, &weftv1.Element{Key: "10.0.0.2"})
	must(t, errorOf(s.Put(ctx, f)))
	fragments, err := c.List(ctx)
	if err != nil || len(fragments.GetFragments()) != 1 || fragments.GetFragments()[0].GetFragment().GetPublisher() != "own" {
		t.Fatalf("fragments %v, error %v", fragments, err)
	}
	// An update that the aggregator refuses is answered, and the stream goes on.
	bad := proto.CloneOf(f)
	bad.Tables[0].Sets[0].Elements[0].Key = "10.0.0.1.2"
	if _, err := s.Put(ctx, bad); err == nil || !strings.Contains(err.Error(), "10.0.0.1.2") {
		t.Fatalf("error %v", err)
	} else if _, ok := errors.AsType[*client.RejectedError](err); !ok {
		t.Fatalf("error %v", err)
	}
	must(t, errorOf(s.Withdraw(ctx, "list")))
	if !k.Empty() {
		t.Fatalf("the kernel has %v", k)
	}
	wantCode(t, local.Invoke(ctx, weftv1.Publisher_Apply_FullMethodName, nil, nil), codes.Unimplemented, "Apply")
	wantCode(t, errorOf(local.NewStream(ctx, nil, weftv1.Inspect_Watch_FullMethodName)), codes.Unimplemented, "Watch")
}

// TestLocalIsChecked: a stream within the process passes the checks of a stream of the socket.
func TestLocalIsChecked(t *testing.T) {
	_, c, _ := startLocal(t, &aggregatortest.Kernel{}, "Own")
	_, err := c.Session(client.SessionConfig{}).Put(aggregatortest.Context(t), table())
	if !errors.Is(err, client.ErrInvalid) || !strings.Contains(err.Error(), "publisher name") {
		t.Fatalf("error %v", err)
	}
}

// TestLocalEnds: the sessions of a client end with it, and those of an aggregator that stops wait.
func TestLocalEnds(t *testing.T) {
	d, c, _ := startLocal(t, &aggregatortest.Kernel{}, "own")
	ctx := aggregatortest.Context(t)
	lost := make(chan error, 16)
	s := c.Session(client.SessionConfig{OnStream: func(err error) { lost <- err }})
	must(t, errorOf(s.Put(ctx, table())))
	must(t, <-lost)
	must(t, d.Stop())
	if err := <-lost; !errors.Is(err, client.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	pending := s.StartWithdraw("list")
	must(t, c.Close())
	if _, err := pending.Wait(ctx); !errors.Is(err, client.ErrClosed) {
		t.Fatalf("error %v", err)
	}
}
