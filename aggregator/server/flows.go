package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/conntrack"
)

const (
	maxFlowAddresses = 16_384
	maxDeletedFlows  = 4096
	// bytes; the largest valid request has less than half
	maxFlowRequest = 1 << 20
)

// FlowTable is the part of package conntrack for the service Flows. List may hold the table's
// socket until f returns, so it must not use the Conn that removes flows after commits.
type FlowTable interface {
	List(ctx context.Context, s *conntrack.Selection, f func(*conntrack.Entry) error) error
	Delete(ctx context.Context, entries []conntrack.Entry) (deleted int, err error)
}

var errNoFlowTable = errors.New("this aggregator does not list or delete conntrack entries")

// mayCall returns the refusal of a call before the request is received.
func (c caller) mayCall(method string) error {
	if !strings.HasPrefix(method, "/"+weftv1.Flows_ServiceDesc.ServiceName+"/") || c.Flows {
		return nil
	}
	if pub := c.access.Publisher(c.Publisher); pub != nil {
		return pub.ConntrackEntries()
	}
	return c.administrator("list or delete conntrack entries")
}

// await waits until the caller's request may be received.
func (c caller) await(ctx context.Context) error {
	err := c.turn.Rest(ctx)
	if err == nil {
		c.request.expect()
	}
	return err
}

// longest returns the largest valid size of an encoded request, in bytes.
func longest(m proto.Message) int {
	switch m.(type) {
	case *weftv1.ListFlowsRequest, *weftv1.DeleteFlowsRequest:
		return maxFlowRequest
	case *weftv1.ReadTableRequest:
		return maxTableQuery
	default:
		return MaxMessage
	}
}

// countList checks the length of the list (field 1) of an encoded request of the service Flows.
//
// Possible errors: errLimit, errMalformed.
func countList(m proto.Message, b []byte) error {
	var most int
	var what string
	switch m.(type) {
	case *weftv1.ListFlowsRequest:
		most, what = maxFlowAddresses, "addresses"
	case *weftv1.DeleteFlowsRequest:
		most, what = maxDeletedFlows, "flows"
	default:
		return nil
	}
	n := 0
	for len(b) > 0 {
		number, _, length := protowire.ConsumeField(b)
		if length < 0 {
			return malformed(protowire.ParseError(length))
		}
		b = b[length:]
		if number == 1 {
			n++
		}
	}
	if n > most {
		return fmt.Errorf("%w: %d %s, want at most %d", errLimit, n, what, most)
	}
	return nil
}

func (s *service) ListFlows(req *weftv1.ListFlowsRequest, stream grpc.ServerStreamingServer[weftv1.ListFlowsResponse]) error {
	if s.flows == nil {
		return errNoFlowTable
	}
	selection, err := selectionOf(req)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	t := callerFrom(ctx).turn
	if err := t.Take(ctx); err != nil {
		return err
	}
	out := sendFlows(ctx, stream.Send)
	err = s.flows.List(ctx, selection, out.add)
	// The next publisher may begin now.
	t.End(out.waited)
	return flowError(ctx, out.finish(err))
}

func flowError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, errLimit) {
		return err
	}
	return fmt.Errorf("%w: %w", aggregator.ErrKernel, err)
}

func selectionOf(req *weftv1.ListFlowsRequest) (*conntrack.Selection, error) {
	if req.GetAll() {
		if len(req.GetAddresses()) > 0 {
			return nil, fmt.Errorf("%w: all together with %d addresses", errMalformed, len(req.GetAddresses()))
		}
		return conntrack.SelectAll(), nil
	}
	addrs := make([]netip.Addr, len(req.GetAddresses()))
	for i, b := range req.GetAddresses() {
		var ok bool
		if addrs[i], ok = netip.AddrFromSlice(b); !ok {
			return nil, fmt.Errorf("%w: address %d has %d bytes, want 4 or 16", errMalformed, i+1, len(b))
		}
	}
	return conntrack.Select(addrs), nil
}

func (s *service) DeleteFlows(ctx context.Context, req *weftv1.DeleteFlowsRequest) (*weftv1.DeleteFlowsResponse, error) {
	if s.flows == nil {
		return nil, errNoFlowTable
	}
	entries := make([]conntrack.Entry, len(req.GetFlows()))
	for i, f := range req.GetFlows() {
		var err error
		if entries[i], err = entryOf(f); err != nil {
			return nil, fmt.Errorf("%w: flow %d: %w", errMalformed, i+1, err)
		}
	}
	c := callerFrom(ctx)
	if err := c.turn.Take(ctx); err != nil {
		return nil, err
	}
	deleted, err := s.flows.Delete(ctx, entries)
	c.turn.End(0)
	if deleted > 0 {
		s.log.Info("deleted flows", "publisher", c.Publisher, "flows", deleted)
	}
	if err != nil {
		return nil, flowError(ctx, fmt.Errorf("%d of %d flows were deleted: %w", deleted, len(entries), err))
	}
	return &weftv1.DeleteFlowsResponse{Deleted: uint32(deleted)}, nil //nolint:gosec // at most maxDeletedFlows
}

func entryOf(f *weftv1.Flow) (conntrack.Entry, error) {
	src, err := endpointOf("source", f.GetSource(), f.GetSourcePort())
	if err != nil {
		return conntrack.Entry{}, err
	}
	dst, err := endpointOf("destination", f.GetDestination(), f.GetDestinationPort())
	switch {
	case err != nil:
		return conntrack.Entry{}, err
	case src.Addr().Is4() != dst.Addr().Is4():
		return conntrack.Entry{}, fmt.Errorf("source %v and destination %v are of different families", src.Addr(), dst.Addr())
	case f.GetProtocol() > 255:
		return conntrack.Entry{}, fmt.Errorf("protocol %d, want at most 255", f.GetProtocol())
	case f.GetZone() > 65535:
		return conntrack.Entry{}, fmt.Errorf("zone %d, want at most 65535", f.GetZone())
	}
	return conntrack.Entry{Protocol: uint8(f.GetProtocol()), Source: src, Destination: dst, Zone: uint16(f.GetZone()), ID: f.GetId()}, nil //nolint:gosec // checked
}

// The first parameter of endpointOf is the name in errors.
func endpointOf(what string, addr []byte, port uint32) (netip.AddrPort, error) {
	a, ok := netip.AddrFromSlice(addr)
	switch {
	case !ok:
		return netip.AddrPort{}, fmt.Errorf("%s has %d bytes, want 4 or 16", what, len(addr))
	case port > 65535:
		return netip.AddrPort{}, fmt.Errorf("port of the %s is %d, want at most 65535", what, port)
	}
	return netip.AddrPortFrom(a, uint16(port)), nil
}
