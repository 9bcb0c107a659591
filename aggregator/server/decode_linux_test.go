package server_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// limited is a configuration with one publisher that may have little.
const limited = "socketGroup: 1234\npublishers:\n- {name: cni, match: {uid: 1234}, limits: {rules: 50, elements: 100}}\n"

// nest encodes messages within each other: the fields are those from the outermost.
func nest(content []byte, fields ...protowire.Number) []byte {
	for i := len(fields) - 1; i >= 0; i-- {
		content = protowire.AppendBytes(protowire.AppendTag(nil, fields[i], protowire.BytesType), content)
	}
	return content
}

// TestTooLargeToDecode sends requests that are small when encoded and huge in memory.
func TestTooLargeToDecode(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	d := startConfigured(t, limited)
	conn := aggregatortest.DialAs(t, d.Socket, aggregatortest.User{UID: 1234, GID: 1234})
	ctx := aggregatortest.Context(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tables := nest(bytes.Repeat([]byte{0x22, 0}, 2<<20), 1)
	err := conn.Invoke(ctx, weftv1.Publisher_Apply_FullMethodName, tables, &weftv1.ApplyResponse{}, grpc.ForceCodec(rawCodec{}))
	wantCode(t, err, codes.ResourceExhausted, "the request is too large: it has 2097152 tables: at most 64 are allowed")
	runtime.ReadMemStats(&after)
	// Decoded they would be more than 300 MiB.
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 100 {
		t.Errorf("to refuse 4 MiB took %d MiB", n)
	}

	s := publish(t, conn, "")
	small, large := fragment("cni"), fragment("cni")
	set := large.GetTables()[0].GetSets()[0]
	for range 40_000 {
		set.Elements = append(set.GetElements(), &weftv1.Element{})
	}
	for _, step := range []struct {
		req    *weftv1.PublishRequest
		reason weftv1.Violation_Reason
		text   string
	}{
		{snapshot(1, large), weftv1.Violation_REASON_LIMIT, "sends a snapshot with at least 40001 elements: at most 100 are allowed"},
		{snapshot(2, small), 0, ""},
		{&weftv1.PublishRequest{Id: 3, Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{Fragment: "list", Tables: []*weftv1.TablePatch{{
			Family: "inet", Name: "cni", Elements: []*weftv1.ElementPatch{{Set: "blocked", Add: set.GetElements()}},
		}}}}}, weftv1.Violation_REASON_LIMIT, "at most 100 are allowed"},
	} {
		if err := s.Send(step.req); err != nil {
			t.Fatal(err)
		}
		resp, err := s.Recv()
		if err != nil || resp.GetId() != step.req.GetId() {
			t.Fatalf("update %d: response %v, error %v", step.req.GetId(), resp, err)
		}
		if step.text == "" {
			if resp.GetCommitted() == nil {
				t.Errorf("update %d: %v: want it committed", resp.GetId(), resp)
			}
			continue
		}
		v := resp.GetRejected().GetViolations()
		if len(v) == 0 || v[0].GetReason() != step.reason || !strings.Contains(v[0].GetMessage(), step.text) {
			t.Errorf("update %d: %v: want %v with %q", resp.GetId(), resp, step.reason, step.text)
		}
	}
}

// TestStrangersAreTold has a peer connect that is not a publisher: its calls are refused
// before their requests, and its connection is closed.
func TestStrangersAreTold(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	d := startConfigured(t, limited)
	c, err := aggregatortest.ConnectAs(d.Socket, aggregatortest.User{UID: 4321, GID: 1234})
	if err != nil {
		t.Fatal(err)
	}
	r := aggregatortest.NewRaw(t, c)
	// The request itself is never sent.
	id := r.Open(weftv1.Publisher_Apply_FullMethodName)
	r.Read(nil)
	if r.Ended(id) != "7" || !r.Gone() {
		t.Errorf("status %q, closed %v: want 7, PERMISSION_DENIED, and the end of the connection", r.Ended(id), r.Gone())
	}
}
