package server_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
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
	if !slices.Equal(info.GetFeatures(), []string{"expiration", "live", "packed", "sets"}) {
		t.Errorf("a daemon without all that is optional has features %q", info.GetFeatures())
	}
	f := table()
	f.Tables[0].Sets[0].ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 517, protowire.VarintType), 1))
	_, err = calls.Apply(ctx, &weftv1.ApplyRequest{Fragment: f})
	wantCode(t, err, codes.InvalidArgument, "set inet demo blocked: unknown field 517; this daemon is v1.2.3: update it")
}

type noFlows struct{}

func (noFlows) Flush(context.Context, []conntrack.Change) (int, error)          { return 0, nil }
func (noFlows) Reconcile(context.Context, []conntrack.Destination) (int, error) { return 0, nil }

// TestFeatures has a daemon with all features: PROTOCOL.md has a row for each.
func TestFeatures(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{
		Kernel: &aggregatortest.Kernel{}, StateDir: t.TempDir(), HistoryEntries: 10, HistoryBytes: 1 << 20, Flows: noFlows{},
	}, Limits: new(flowTable).use})
	info, err := newAPI(dial(t, d.Socket)).GetInfo(aggregatortest.Context(t), &weftv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../api/v1/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
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
