package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/conntrack"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// flowTable is a connection tracking table in memory.
type flowTable struct {
	entries []conntrack.Entry
	// err is what List and Delete return in the end.
	err error
	// listing is called at the start of a listing.
	listing func(context.Context)

	mu        sync.Mutex
	calls     int
	selection *conntrack.Selection
	deleted   []conntrack.Entry
}

func (f *flowTable) List(ctx context.Context, s *conntrack.Selection, each func(*conntrack.Entry) error) error {
	f.mu.Lock()
	f.calls++
	f.selection = s
	f.mu.Unlock()
	if f.listing != nil {
		f.listing(ctx)
	}
	for i := range f.entries {
		if err := each(&f.entries[i]); err != nil {
			return err
		}
	}
	return f.err
}

func (f *flowTable) Delete(_ context.Context, entries []conntrack.Entry) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.deleted = append(f.deleted, entries...)
	return len(entries), f.err
}

// use makes a server use the table.
func (f *flowTable) use(c *server.Config) { c.Flows = f }

// someEntries are n entries, all different.
func someEntries(n int) []conntrack.Entry {
	out := make([]conntrack.Entry, n)
	for i := range out {
		a, b := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), netip.AddrFrom4([4]byte{10, 96, 0, 1})
		if i%3 == 0 {
			a, b = netip.AddrFrom16([16]byte{0xfd, 14: byte(i >> 8), 15: byte(i)}), netip.AddrFrom16([16]byte{0xfd, 96})
		}
		at := func(a netip.Addr, port int) netip.AddrPort { return netip.AddrPortFrom(a, uint16(port)) }
		out[i] = conntrack.Entry{
			Protocol: []uint8{unix.IPPROTO_UDP, unix.IPPROTO_TCP, unix.IPPROTO_ICMP}[i%3], Source: at(a, i), Destination: at(b, 53), ReplySource: at(b.Next(), 5353), ReplyDestination: at(a, i+1),
			Zone: uint16(i % 7), ID: uint32(i) * 77777, SeenReply: i%2 == 0, Assured: i%5 == 0, TCPState: uint8(i % 10),
		}
	}
	return out
}

// TestFlowsCrossTheSocket lists and deletes entries with the client.
func TestFlowsCrossTheSocket(t *testing.T) {
	table := &flowTable{entries: someEntries(5000)}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}, Limits: table.use})
	c := d.Dial(t, "policy")
	ctx := aggregatortest.Context(t)
	var flows []client.Flow
	if err := c.ListAllFlows(ctx, func(part []client.Flow) error { flows = append(flows, part...); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(flows) != len(table.entries) {
		t.Fatalf("%d flows, want %d", len(flows), len(table.entries))
	}
	for i, f := range flows {
		got := conntrack.Entry{Protocol: f.Protocol, Source: f.Source, Destination: f.Destination, ReplySource: f.ReplySource, ReplyDestination: f.ReplyDestination,
			Zone: f.Zone, ID: f.ID, SeenReply: f.SeenReply, Assured: f.Assured, TCPState: uint8(f.TCPState)} //nolint:gosec // small
		if got != table.entries[i] {
			t.Fatalf("flow %d is %+v, want %+v", i, got, table.entries[i])
		}
	}
	deleted, err := c.DeleteFlows(ctx, flows)
	if err != nil || deleted != len(flows) {
		t.Errorf("DeleteFlows = %d, %v; want %d", deleted, err, len(flows))
	}
	for i, e := range table.deleted {
		want := table.entries[i]
		if e != (conntrack.Entry{Protocol: want.Protocol, Source: want.Source, Destination: want.Destination, Zone: want.Zone, ID: want.ID}) {
			t.Fatalf("entry %d is %+v, want the identity of %+v", i, e, want)
		}
	}
	stop := errors.New("stop")
	addrs := []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("fd00::1")}
	if err := c.ListFlows(ctx, addrs, func([]client.Flow) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("ListFlows = %v, want the error of the function", err)
	}
	if want := conntrack.Select(addrs); fmt.Sprint(table.selection) != fmt.Sprint(want) {
		t.Errorf("the selection is %v, want %v", table.selection, want)
	}
}

// TestNoFlowTable calls an aggregator that does not have connection tracking.
func TestNoFlowTable(t *testing.T) {
	d, _ := start(t, &aggregatortest.Kernel{})
	c := d.Dial(t, "policy")
	wantErr(t, "ListAllFlows", c.ListAllFlows(t.Context(), func([]client.Flow) error { return nil }), errors.ErrUnsupported)
	if _, err := c.DeleteFlows(t.Context(), make([]client.Flow, 1)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("DeleteFlows = %v, want ErrUnsupported", err)
	}
}

// TestFlowErrorsOfTheKernel has the kernel fail after a part of the work.
func TestFlowErrorsOfTheKernel(t *testing.T) {
	table := &flowTable{entries: someEntries(10), err: unix.EBUSY}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}, Limits: table.use})
	a := newAPI(dial(t, d.Socket))
	wantCode(t, each(t.Context(), a.ListFlows, &weftv1.ListFlowsRequest{All: true}, func(*weftv1.ListFlowsResponse) {}),
		codes.Unavailable, "device or resource busy")
	ten := netip.MustParseAddr("10.0.0.1").AsSlice()
	wantCode(t, errorOf(a.DeleteFlows(t.Context(), &weftv1.DeleteFlowsRequest{Flows: []*weftv1.Flow{{Source: ten, Destination: ten}, {Source: ten, Destination: ten}}})),
		codes.Unavailable, "2 of 2 flows were deleted: device or resource busy")
}

// TestInvalidFlowRequests sends requests that mean nothing. The table is not asked.
func TestInvalidFlowRequests(t *testing.T) {
	table := &flowTable{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}, Limits: table.use})
	a := newAPI(dial(t, d.Socket))
	ten, six := netip.MustParseAddr("10.0.0.1").AsSlice(), netip.MustParseAddr("fd00::1").AsSlice()
	list := func(req *weftv1.ListFlowsRequest) error {
		return each(t.Context(), a.ListFlows, req, func(*weftv1.ListFlowsResponse) {})
	}
	wantCode(t, list(&weftv1.ListFlowsRequest{Addresses: [][]byte{ten, {1, 2, 3}}}),
		codes.InvalidArgument, "address 2 has 3 bytes, want 4 or 16")
	wantCode(t, list(&weftv1.ListFlowsRequest{Addresses: [][]byte{ten}, All: true}),
		codes.InvalidArgument, "all together with 1 addresses")
	wantCode(t, list(&weftv1.ListFlowsRequest{Addresses: slices.Repeat([][]byte{six}, 16_385)}),
		codes.ResourceExhausted, "16385 addresses, want at most 16384")
	for text, f := range map[string]*weftv1.Flow{
		"flow 2: source has 0 bytes, want 4 or 16":                                  {},
		"flow 2: destination has 5 bytes, want 4 or 16":                             {Source: ten, Destination: make([]byte, 5)},
		"flow 2: source 10.0.0.1 and destination fd00::1 are of different families": {Source: ten, Destination: six},
		"flow 2: port of the source is 65536, want at most 65535":                   {Source: ten, Destination: ten, SourcePort: 65536},
		"flow 2: port of the destination is 65536, want at most 65535":              {Source: ten, Destination: ten, DestinationPort: 65536},
		"flow 2: protocol 256, want at most 255":                                    {Source: ten, Destination: ten, Protocol: 256},
		"flow 2: zone 65536, want at most 65535":                                    {Source: ten, Destination: ten, Zone: 65536},
	} {
		wantCode(t, errorOf(a.DeleteFlows(t.Context(), &weftv1.DeleteFlowsRequest{Flows: []*weftv1.Flow{{Source: ten, Destination: ten}, f}})),
			codes.InvalidArgument, text)
	}
	wantCode(t, errorOf(a.DeleteFlows(t.Context(), &weftv1.DeleteFlowsRequest{Flows: slices.Repeat([]*weftv1.Flow{{}}, 4097)})),
		codes.ResourceExhausted, "4097 flows, want at most 4096")
	if table.calls != 0 {
		t.Errorf("the table was asked %d times", table.calls)
	}
	wantErr(t, "ListFlows", d.Dial(t, "p").ListFlows(t.Context(), make([]netip.Addr, 16_385), nil), client.ErrTooLarge)
}

// TestFlowListsAreCounted sends eight million addresses and flows, which would take a GiB if they
// were decoded.
func TestFlowListsAreCounted(t *testing.T) {
	table := &flowTable{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}, Limits: table.use})
	conn := dial(t, d.Socket)
	for method, resp := range map[string]any{weftv1.Flows_ListFlows_FullMethodName: &weftv1.ListFlowsResponse{}, weftv1.Flows_DeleteFlows_FullMethodName: &weftv1.DeleteFlowsResponse{}} {
		list := slices.Repeat([]byte{1<<3 | byte(protowire.BytesType), 0}, server.MaxMessage/2-10)
		before := memory()
		wantCode(t, conn.Invoke(aggregatortest.Context(t), method, list, resp, grpc.ForceCodec(rawCodec{})),
			codes.ResourceExhausted, "want at most")
		if used := memory() - before; used > 128<<20 {
			t.Errorf("%s: %d MiB are used", method, used>>20)
		}
		wantCode(t, conn.Invoke(aggregatortest.Context(t), method, append(slices.Repeat([]byte{1<<3 | byte(protowire.BytesType), 0}, 100), 0xff), resp, grpc.ForceCodec(rawCodec{})),
			codes.InvalidArgument, "cannot be decoded")
	}
	if table.calls != 0 {
		t.Errorf("the table was asked %d times", table.calls)
	}
}

// TestRightToFlows calls with and without the right, and loses it during a listing.
func TestRightToFlows(t *testing.T) {
	nfttest.Require(t, nfttest.Users)
	const one, two = "socketGroup: 4000\npublishers:\n- {name: one, match: {uid: 4001}, read: true, system: true}\n", "- {name: two, match: {uid: 4002}, flows: true}\n"
	listing := make(chan struct{})
	table := &flowTable{entries: someEntries(1), listing: func(ctx context.Context) { close(listing); <-ctx.Done() }}
	d := startConfigured(t, one+two, table.use)
	ctx := aggregatortest.Context(t)
	list := func(a api) error {
		return each(ctx, a.ListFlows, &weftv1.ListFlowsRequest{All: true}, func(*weftv1.ListFlowsResponse) {})
	}
	without, with := newAPI(d.user(t, 4001)), newAPI(d.user(t, 4002))
	const refusal = "publisher one may not list or delete conntrack entries: that needs flows: true (no flows at "
	wantCode(t, list(without), codes.PermissionDenied, refusal)
	wantCode(t, errorOf(without.DeleteFlows(ctx, &weftv1.DeleteFlowsRequest{})), codes.PermissionDenied, refusal)
	if table.calls != 0 {
		t.Errorf("the table was asked %d times", table.calls)
	}
	must(t, errorOf(with.DeleteFlows(ctx, &weftv1.DeleteFlowsRequest{})))
	done := make(chan error, 1)
	go func() { done <- list(with) }()
	<-listing
	d.reload(t, one+"- {name: two, match: {uid: 4002}}\n")
	wantCode(t, <-done, codes.PermissionDenied, "publisher two may not list or delete conntrack entries")
	wantCode(t, errorOf(with.DeleteFlows(ctx, &weftv1.DeleteFlowsRequest{})), codes.PermissionDenied, "(no flows at ")
}

// TestManyListings has one publisher list a hundred times at once, and another one once.
func TestManyListings(t *testing.T) {
	release := make(chan struct{})
	table := &flowTable{entries: someEntries(1), listing: func(context.Context) { <-release }}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}, Limits: table.use})
	n := newNeighbour(t, d)
	ctx := aggregatortest.Context(t)
	outcomes, other := make(chan error, 100), make(chan error, 1)
	c := d.Dial(t, "greedy")
	for range 100 {
		go func() { outcomes <- c.ListAllFlows(ctx, func([]client.Flow) error { return nil }) }()
	}
	for range 98 {
		wantErr(t, "one listing too many", <-outcomes, client.ErrLimit)
	}
	go func() {
		other <- d.Dial(t, "other").ListAllFlows(ctx, func([]client.Flow) error { return nil })
	}()
	n.works(t, "beside listings")
	close(release)
	for _, err := range []error{<-other, <-outcomes, <-outcomes} {
		if err != nil {
			t.Error(err)
		}
	}
}
