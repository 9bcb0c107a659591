package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// transcript is a connection that keeps what is written.
type transcript struct {
	net.Conn
	wrote bytes.Buffer
}

func (c *transcript) Write(b []byte) (int, error) { return c.wrote.Write(b) }

func (*transcript) Close() error { return nil }

// message is what a caller sends to a method.
type message struct {
	method string
	proto.Message
}

// conversations are what a caller may say, in bytes. Updates are sent on one stream.
func conversations(f testing.TB) (all [][]byte) {
	name := &weftv1.FragmentName{Name: "list"}
	list := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}
	for _, messages := range [][]message{
		{
			{weftv1.Publisher_Apply_FullMethodName, &weftv1.ApplyRequest{Fragment: table()}},
			{weftv1.Inspect_GetFragment_FullMethodName, &weftv1.GetFragmentRequest{Fragment: name}},
			{weftv1.Inspect_ListFragments_FullMethodName, &weftv1.ListFragmentsRequest{}},
			{weftv1.Publisher_Delete_FullMethodName, &weftv1.DeleteRequest{Fragment: name}},
		},
		{
			{weftv1.Inspect_Watch_FullMethodName, &weftv1.WatchRequest{}},
			{healthv1.Health_Check_FullMethodName, &healthv1.HealthCheckRequest{}},
			{reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName, list},
		},
	} {
		c := &transcript{}
		r := aggregatortest.NewRaw(f, c)
		for _, m := range messages {
			must(f, r.Send(r.Open(m.method), aggregatortest.Message(m), true))
		}
		all = append(all, c.wrote.Bytes())
	}
	c := &transcript{}
	r := aggregatortest.NewRaw(f, c)
	id := r.Open(weftv1.Publisher_Publish_FullMethodName)
	for _, u := range updates() {
		must(f, r.Send(id, aggregatortest.Message(u), false))
	}
	return append(all, c.wrote.Bytes())
}

// updates are one of each kind.
func updates() []*weftv1.PublishRequest {
	f := table()
	f.Lifetime = weftv1.Lifetime_LIFETIME_SESSION
	f.Tables[0].Chains = []*weftv1.Chain{{
		Name: "input", Type: "filter", Hook: "input", Priority: "filter", Policy: "accept",
		Rules: []*weftv1.Rule{{Text: "ip saddr @blocked counter drop", Comment: "c"}},
	}}
	f.Tables[0].Maps = []*weftv1.Set{{
		Name: "m", Type: "ipv4_addr : verdict", Timeout: durationpb.New(1e9), Size: 9,
		Elements: []*weftv1.Element{{Key: "10.0.0.1", Value: "accept", Timeout: durationpb.New(5e6)}},
	}}
	half := &weftv1.Fragment{Name: "file", Nft: "table ip x { chain c { type nat hook prerouting priority dstnat; tcp dport 80 dnat to 10.0.0.1:8080; } }"}
	return []*weftv1.PublishRequest{
		{Id: 1, Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}},
		{Id: 2, Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{Fragment: "list", Tables: []*weftv1.TablePatch{{
			Family: "inet", Name: "demo", PutChains: []*weftv1.Chain{{Name: "n"}}, DeleteSets: []string{"m"},
			Elements: []*weftv1.ElementPatch{{Set: "blocked", Add: []*weftv1.Element{{Key: "10.0.0.9"}}, Remove: []string{"10.0.0.1"}}},
		}}}}},
		{Id: 3, More: true, Update: &weftv1.PublishRequest_Snapshot{Snapshot: half}},
		{Id: 3, Update: &weftv1.PublishRequest_Snapshot{Snapshot: &weftv1.Fragment{Name: "file"}}},
		{Id: 4, Update: &weftv1.PublishRequest_Withdraw{Withdraw: "list"}},
		{Id: 5},
	}
}

// tidy deletes what fuzzing has left, and fails if the server does not go on.
func tidy(t testing.TB, conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), aggregatortest.Wait)
	defer cancel()
	api := newAPI(conn)
	list, err := api.List(ctx, &weftv1.ListFragmentsRequest{})
	if err != nil {
		t.Fatalf("the server does not go on: %v", err)
	}
	if len(list.GetFragments()) < 16 {
		return
	}
	for _, f := range list.GetFragments() {
		_, err := api.Delete(ctx, &weftv1.DeleteRequest{Fragment: f.GetFragment()})
		if c := status.Code(err); c != codes.OK && c != codes.NotFound && c != codes.FailedPrecondition {
			t.Fatalf("delete %s: %v", f.GetFragment().Text(), err)
		}
	}
}

// FuzzConnection writes bytes to the socket: conversations that are cut off and
// changed.
func FuzzConnection(f *testing.F) {
	d := unlimited(f)
	for _, b := range conversations(f) {
		for _, cut := range []int{len(b), len(b) - 1, len(b) / 2, len(b) / 3, 30, 10} {
			f.Add(b[:cut], uint16(0), uint8(0))
		}
		f.Add(b, uint16(60), uint8(0xff))
		f.Add(b, uint16(len(b)-9), uint8(4))
	}
	conn := dial(f, d.Socket)
	f.Fuzz(func(t *testing.T, b []byte, at uint16, flip uint8) {
		if int(at) < len(b) {
			b = bytes.Clone(b)
			b[at] ^= flip
		}
		c, err := net.Dial("unix", d.Socket)
		must(t, err)
		if _, err := c.Write(b); err == nil {
			// The server has all of it when it has seen the end.
			_ = c.(*net.UnixConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}
		_ = c.Close()
		tidy(t, conn)
	})
}

// calls are the methods that FuzzMessages calls.
var calls = func() (all []string) {
	for _, service := range []grpc.ServiceDesc{weftv1.Publisher_ServiceDesc, weftv1.Inspect_ServiceDesc, weftv1.Flows_ServiceDesc, weftv1.History_ServiceDesc, weftv1.Tables_ServiceDesc, weftv1.Admin_ServiceDesc} {
		for _, m := range service.Methods {
			all = append(all, "/"+service.ServiceName+"/"+m.MethodName)
		}
		for _, m := range service.Streams {
			all = append(all, "/"+service.ServiceName+"/"+m.StreamName)
		}
	}
	return slices.DeleteFunc(all, func(method string) bool {
		// Cleanup stops the aggregator, Publish is the case beyond calls, and Watch does not end.
		return slices.Contains([]string{weftv1.Admin_Cleanup_FullMethodName, weftv1.Publisher_Publish_FullMethodName, weftv1.Inspect_Watch_FullMethodName}, method)
	})
}()

// FuzzMessages calls each method with arbitrary messages, those that do not
// decode too, and gives a Publish stream one after the other.
func FuzzMessages(f *testing.F) {
	// The index of a call, or beyond: messages of a Publish stream, of which
	// each is cut at the byte that says so.
	add := func(method string, m proto.Message) {
		call := slices.Index(calls, method)
		b, err := proto.Marshal(m)
		must(f, err)
		f.Add(uint8(call), b, uint16(0))
		f.Add(uint8(call), b[:len(b)/2], uint16(0))
	}
	add(weftv1.Publisher_Apply_FullMethodName, &weftv1.ApplyRequest{Fragment: updates()[0].GetSnapshot()})
	add(weftv1.Publisher_Apply_FullMethodName, &weftv1.ApplyRequest{Fragment: updates()[2].GetSnapshot()})
	add(weftv1.Publisher_Delete_FullMethodName, &weftv1.DeleteRequest{Fragment: &weftv1.FragmentName{Publisher: "tester", Name: "list"}})
	add(weftv1.Inspect_GetFragment_FullMethodName, &weftv1.GetFragmentRequest{Fragment: &weftv1.FragmentName{Name: "list"}})
	add(weftv1.Publisher_Plan_FullMethodName, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{table()}, Withdraw: []*weftv1.FragmentName{{Name: "list"}}})
	add(weftv1.Inspect_GetTable_FullMethodName, &weftv1.GetTableRequest{Family: "inet", Name: "demo"})
	add(weftv1.Inspect_Owner_FullMethodName, &weftv1.OwnerRequest{Object: &weftv1.ObjectName{Kind: "element", Family: "inet", Table: "demo", Name: "blocked", Key: "10.0.0.1", Handle: 3}})
	var all []byte
	for _, u := range updates() {
		b, err := proto.Marshal(u)
		must(f, err)
		f.Add(uint8(len(calls)), b, uint16(0))
		all = append(all, b...)
		f.Add(uint8(len(calls)), all, uint16(len(all)-len(b)))
	}
	d := unlimited(f)
	conn := dial(f, d.Socket)
	f.Fuzz(func(t *testing.T, which uint8, b []byte, cut uint16) {
		ctx, cancel := context.WithTimeout(context.Background(), aggregatortest.Wait)
		defer cancel()
		var err error
		if n := int(which) % (len(calls) + 1); n < len(calls) {
			err = call(ctx, conn, calls[n], b)
		} else {
			at := min(int(cut), len(b))
			err = call(ctx, conn, weftv1.Publisher_Publish_FullMethodName, b[:at], b[at:])
		}
		switch code := status.Code(err); code {
		case codes.OK, codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.Unimplemented, codes.ResourceExhausted:
		case codes.Internal:
			if !bytes.Contains([]byte(err.Error()), []byte("unmarshal")) {
				t.Errorf("call %d: %v", which, err)
			}
		default:
			t.Errorf("call %d: %v", which, err)
		}
		tidy(t, conn)
	})
}

// call sends the messages of a call, and returns how it ended.
func call(ctx context.Context, conn *grpc.ClientConn, method string, messages ...[]byte) error {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodec(rawCodec{}))
	if err != nil {
		return err
	}
	for _, m := range messages {
		if s.SendMsg(m) != nil {
			break
		}
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	for {
		if err := s.RecvMsg(nil); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
