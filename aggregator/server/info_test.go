package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/aggregatortest"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/server"
)

// TestGetInfo asks a daemon for its version and limits, and sends it a fragment of a
// newer version of the protocol.
func TestGetInfo(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, Version: "v1.2.3"}})
	calls, ctx := newAPI(dial(t, d.Socket)), aggregatortest.Context(t)
	info, err := calls.GetInfo(ctx, &weftv1.GetInfoRequest{})
	if err != nil || info.GetVersion() != "v1.2.3" || info.GetKernel().GetRelease() == "" || info.GetLimits().GetMessageBytes() != server.MaxMessage {
		t.Fatalf("info %v, error %v", info, err)
	}
	f := table()
	f.Tables[0].Sets[0].ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 517, protowire.VarintType), 1))
	_, err = calls.Apply(ctx, &weftv1.ApplyRequest{Fragment: f})
	wantCode(t, err, codes.InvalidArgument, "set inet demo blocked: unknown field 517; this daemon is v1.2.3: update it")
}
