package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// describe returns a service of two calls: one that answers, one that panics.
func describe(answer string) *grpc.ServiceDesc {
	call := func(name string, f func() *wrapperspb.StringValue) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
			req := &emptypb.Empty{}
			if err := dec(req); err != nil {
				return nil, err
			}
			info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/example.Books/" + name}
			return in(ctx, req, info, func(context.Context, any) (any, error) { return f(), nil })
		}}
	}
	return &grpc.ServiceDesc{ServiceName: "example.Books", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{
		call("Read", func() *wrapperspb.StringValue { return wrapperspb.String(answer) }),
		call("Burn", func() *wrapperspb.StringValue { panic("paper") }),
	}}
}

// TestRegister has a further service on the socket: it is called once for a
// server, its calls pass the interceptors, and reflection lists it.
func TestRegister(t *testing.T) {
	made := 0
	register := func(r grpc.ServiceRegistrar) {
		made++
		r.RegisterService(describe("words"), struct{}{})
	}
	d := aggregatortest.Start(t, aggregatortest.Config{
		Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}},
		Limits: func(c *server.Config) { c.Register = register },
	})
	conn := dial(t, d.Socket)
	ctx := aggregatortest.Context(t)
	got := &wrapperspb.StringValue{}
	if err := conn.Invoke(ctx, "/example.Books/Read", &emptypb.Empty{}, got); err != nil || got.GetValue() != "words" {
		t.Fatalf("Read answers %q, %v", got.GetValue(), err)
	}
	wantCode(t, conn.Invoke(ctx, "/example.Books/Burn", &emptypb.Empty{}, got), codes.Internal, "the handler panicked")
	wantCode(t, conn.Invoke(ctx, "/example.Books/Lend", &emptypb.Empty{}, got), codes.Unimplemented, "Lend")
	if _, err := newAPI(conn).List(ctx, &weftv1.ListFragmentsRequest{}); err != nil {
		t.Fatalf("the aggregator's own service: %v", err)
	}
	names := reflected(t, conn)
	for _, want := range []string{"example.Books", "weft.v1.Publisher", "weft.v1.Inspect", "weft.v1.Admin", "grpc.health.v1.Health"} {
		if !slices.Contains(names, want) {
			t.Errorf("reflection lists %s, and not %s", strings.Join(names, " "), want)
		}
	}
	if made != 1 {
		t.Errorf("Register was called %d times", made)
	}
}

// reflected returns the services that reflection lists.
func reflected(t *testing.T, conn *grpc.ClientConn) []string {
	t.Helper()
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(aggregatortest.Context(t))
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
	return names
}
