package client

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

const (
	// MaxFlowAddresses is the number of addresses in a call of ListFlows.
	MaxFlowAddresses = 16_384
	maxDeletedFlows  = 4096
)

// Flow is an entry of the kernel's connection tracking table. For ICMP and ICMPv6, the port of a
// source is the identifier, and the port of a destination is the type times 256 plus the code.
type Flow struct {
	// IP protocol, such as 17 for UDP
	Protocol uint8
	// endpoints of the first packet before address translation
	Source, Destination netip.AddrPort
	// endpoints of packets in the other direction; ReplySource is the destination after translation
	ReplySource, ReplyDestination netip.AddrPort
	// zone of the original direction
	Zone uint16
	// the kernel's number
	ID uint32
	// SeenReply is true after packets of both directions, Assured if the kernel keeps the entry
	// when the table is full.
	SeenReply, Assured bool
	TCPState           weftv1.TCPState
	// true if the kernel counts the bytes
	Accounted                 bool
	OriginalBytes, ReplyBytes uint64
}

// ListFlows calls f with the entries with a source or reply source in addrs, in parts. An entry
// that exists during the whole call is listed at least once. The caller may keep the parts. An
// error of f ends the call and is returned. If f takes longer than a few seconds altogether, the
// call ends with ErrLimit.
//
// Between two listings a publisher waits ten times as long as the first took, at most 10 s. One
// call may wait; another concurrent call fails with ErrLimit.
//
// Possible errors: ErrPermission (the publisher needs flows: true in the configuration), ErrLimit,
// ErrTooLarge (more than MaxFlowAddresses), ErrInvalid, ErrUnavailable, ErrClosed,
// errors.ErrUnsupported (also without connection tracking), ctx's.
func (c *Client) ListFlows(ctx context.Context, addrs []netip.Addr, f func([]Flow) error) error {
	if len(addrs) > MaxFlowAddresses {
		return fmt.Errorf("list flows: %w: %d addresses, want at most %d", ErrTooLarge, len(addrs), MaxFlowAddresses)
	}
	req := &weftv1.ListFlowsRequest{Addresses: make([][]byte, len(addrs))}
	for i, a := range addrs {
		req.Addresses[i] = a.Unmap().AsSlice()
	}
	return c.listFlows(ctx, req, f)
}

// ListAllFlows is ListFlows for all entries.
func (c *Client) ListAllFlows(ctx context.Context, f func([]Flow) error) error {
	return c.listFlows(ctx, &weftv1.ListFlowsRequest{All: true}, f)
}

func (c *Client) listFlows(ctx context.Context, req *weftv1.ListFlowsRequest, f func([]Flow) error) error {
	return each(ctx, c, "list flows", "", c.flows.ListFlows, req, func(part *weftv1.ListFlowsResponse) error {
		flows := make([]Flow, len(part.GetFlows()))
		for i, m := range part.GetFlows() {
			flows[i] = flowOf(m)
		}
		return f(flows)
	})
}

// DeleteFlows deletes listed entries, except entries that are gone or have another ID. The number
// counts known deletions, also after an error.
//
// Possible errors: the errors of ListFlows.
func (c *Client) DeleteFlows(ctx context.Context, flows []Flow) (deleted int, err error) {
	for batch := range slices.Chunk(flows, maxDeletedFlows) {
		req := &weftv1.DeleteFlowsRequest{Flows: make([]*weftv1.Flow, len(batch))}
		for i := range batch {
			req.Flows[i] = batch[i].identity()
		}
		resp, err := call(ctx, c, "delete flows", "", c.flows.DeleteFlows, req)
		if err != nil {
			return deleted, err
		}
		deleted += int(resp.GetDeleted())
	}
	return deleted, nil
}

// Malformed fields become zero values.
func flowOf(m *weftv1.Flow) Flow {
	return Flow{
		Protocol:         uint8(m.GetProtocol()), //nolint:gosec // eight bits
		Source:           endpoint(m.GetSource(), m.GetSourcePort()),
		Destination:      endpoint(m.GetDestination(), m.GetDestinationPort()),
		ReplySource:      endpoint(m.GetReplySource(), m.GetReplySourcePort()),
		ReplyDestination: endpoint(m.GetReplyDestination(), m.GetReplyDestinationPort()),
		Zone:             uint16(m.GetZone()), //nolint:gosec // sixteen bits
		ID:               m.GetId(),
		SeenReply:        m.GetSeenReply(),
		Assured:          m.GetAssured(),
		TCPState:         m.GetTcpState(),
		Accounted:        m.GetBytes() != nil,
		OriginalBytes:    m.GetBytes().GetOriginal(),
		ReplyBytes:       m.GetBytes().GetReply(),
	}
}

func endpoint(addr []byte, port uint32) netip.AddrPort {
	a, _ := netip.AddrFromSlice(addr)
	return netip.AddrPortFrom(a, uint16(port)) //nolint:gosec // sixteen bits
}

func (f *Flow) identity() *weftv1.Flow {
	return &weftv1.Flow{
		Protocol: uint32(f.Protocol),
		Source:   f.Source.Addr().AsSlice(), SourcePort: uint32(f.Source.Port()),
		Destination: f.Destination.Addr().AsSlice(), DestinationPort: uint32(f.Destination.Port()),
		Zone: uint32(f.Zone), Id: f.ID,
	}
}
