package kernel

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/set"
)

const traceQueue = 256

// TraceType is the kind of a TraceEvent.
type TraceType uint32

// The types of trace events (enum nft_trace_types), and Trace's own.
const (
	// TracePolicy is the end of a base chain: its policy decides.
	TracePolicy TraceType = unix.NFT_TRACETYPE_POLICY
	// TraceReturn is the end of a chain's rules; in a base chain it precedes TracePolicy.
	TraceReturn TraceType = unix.NFT_TRACETYPE_RETURN
	// TraceRule is a rule that ended with a verdict, even continue.
	TraceRule TraceType = unix.NFT_TRACETYPE_RULE
	// TraceOverrun means dropped or undecodable events.
	TraceOverrun TraceType = 1 << 16
	// TraceFailed ends the trace for the reason in Err.
	TraceFailed TraceType = 1<<16 + 1
)

// String returns a lower-case word.
func (t TraceType) String() string {
	names := map[TraceType]string{TracePolicy: "policy", TraceReturn: "return", TraceRule: "rule", TraceOverrun: "overrun", TraceFailed: "failed"}
	return cmp.Or(names[t], fmt.Sprintf("type(%d)", uint32(t)))
}

// TraceEvent is a step of a packet with "meta nftrace" 1.
type TraceEvent struct {
	Type TraceType
	// ID can repeat after many packets.
	ID    uint32
	Table nft.TableID
	Chain string
	// Rule is the handle of a TraceRule.
	Rule uint64
	// Verdict is for TraceRule and TraceReturn.
	Verdict set.Verdict
	// Policy is datatype.VerdictAccept or VerdictDrop, for TracePolicy.
	Policy int32
	// Protocol is the packet's NFPROTO_*, which differs from an inet table's.
	Protocol nft.Family
	// In and Out are interface indexes, or 0.
	In, Out uint32
	Mark    uint32
	// Link, Network and Transport are the beginnings of the headers, only in a packet's first event
	// at a base chain. Transport has at most 20 bytes, payload included.
	Link, Network, Transport []byte
	Err                      error
}

// Trace reports the steps of all packets with "meta nftrace" 1 in the network namespace, in all
// tables. It closes the channel when ctx is done and after a TraceFailed.
//
// 256 events wait for a slow receiver, further ones in the socket's buffer; then the kernel drops
// events (TraceOverrun).
func (c *Conn) Trace(ctx context.Context) (<-chan TraceEvent, error) {
	sock, err := listen(c.netNS, c.portID.Load(), unix.NFNLGRP_NFTRACE)
	if err != nil {
		return nil, fmt.Errorf("trace packets: %w", err)
	}
	events := &stream[TraceEvent]{
		sock: sock, out: make(chan TraceEvent, traceQueue), decode: decodeTraces,
		overrun: func() TraceEvent { return TraceEvent{Type: TraceOverrun} },
		failed: func(err error) TraceEvent {
			return TraceEvent{Type: TraceFailed, Err: fmt.Errorf("trace packets: %w", err)}
		},
	}
	go events.run(ctx)
	return events.out, nil
}

func decodeTraces(b []byte) []TraceEvent {
	var events []TraceEvent
	for len(b) > 0 {
		h, payload, rest, ok := nextMessage(b)
		m, err := parseReply(payload)
		if !ok || err != nil {
			return append(events, TraceEvent{Type: TraceOverrun})
		}
		b = rest
		if h.typ != msgType(unix.NFT_MSG_TRACE) {
			continue
		}
		event, err := decodeTrace(m)
		if err != nil {
			return append(events, TraceEvent{Type: TraceOverrun})
		}
		events = append(events, event)
	}
	return events
}

func decodeTrace(m reply) (TraceEvent, error) {
	e := TraceEvent{Table: nft.TableID{Family: m.family}}
	var protocol uint32
	err := attr.Fields{
		attr.Always(unix.NFTA_TRACE_TYPE, (*uint32)(&e.Type)),
		attr.Always(unix.NFTA_TRACE_ID, &e.ID),
		attr.Always(unix.NFTA_TRACE_TABLE, &e.Table.Name),
		attr.Always(unix.NFTA_TRACE_CHAIN, &e.Chain),
		attr.Always(unix.NFTA_TRACE_RULE_HANDLE, &e.Rule),
		attr.Always(unix.NFTA_TRACE_VERDICT, attr.Fields{
			attr.Always(unix.NFTA_VERDICT_CODE, &e.Verdict.Code),
			attr.Always(unix.NFTA_VERDICT_CHAIN, &e.Verdict.Chain),
		}),
		attr.Always(unix.NFTA_TRACE_POLICY, &e.Policy),
		attr.Always(unix.NFTA_TRACE_NFPROTO, &protocol),
		attr.Always(unix.NFTA_TRACE_IIF, &e.In),
		attr.Always(unix.NFTA_TRACE_OIF, &e.Out),
		attr.Always(unix.NFTA_TRACE_MARK, &e.Mark),
		attr.Always(unix.NFTA_TRACE_LL_HEADER, &e.Link),
		attr.Always(unix.NFTA_TRACE_NETWORK_HEADER, &e.Network),
		attr.Always(unix.NFTA_TRACE_TRANSPORT_HEADER, &e.Transport),
	}.Read(m.attrs)
	e.Protocol = nft.Family(protocol)
	if e.Type == TraceRule && e.Rule == 0 {
		// the kernel reports the end of a chain as a rule without a handle
		e.Type = TraceReturn
	}
	return e, err
}
