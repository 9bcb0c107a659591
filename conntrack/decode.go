package conntrack

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The attributes of an entry that the package reads, and those of a filter
// (linux/netfilter/nfnetlink_conntrack.h).
const (
	ctaTupleOrig  = 1
	ctaTupleReply = 2
	ctaStatus     = 3
	ctaProtoInfo  = 4
	// The counters of the original and the reply direction.
	ctaCountersOrig  = 9
	ctaCountersReply = 10
	ctaID            = 12
	ctaZone          = 18
	ctaFilter        = 25

	ctaTupleIP    = 1
	ctaTupleProto = 2
	ctaTupleZone  = 3

	ctaIPv4Src = 1
	ctaIPv4Dst = 2
	ctaIPv6Src = 3
	ctaIPv6Dst = 4

	ctaProtoNum        = 1
	ctaProtoSrcPort    = 2
	ctaProtoDstPort    = 3
	ctaProtoICMPID     = 4
	ctaProtoICMPType   = 5
	ctaProtoICMPCode   = 6
	ctaProtoICMPv6ID   = 7
	ctaProtoICMPv6Type = 8
	ctaProtoICMPv6Code = 9

	ctaCountersBytes = 2

	ctaProtoInfoTCP      = 1
	ctaProtoInfoTCPState = 1

	ctaFilterOrigFlags  = 1
	ctaFilterReplyFlags = 2
)

// nfgenmsgLen is the length of the header before the attributes.
const nfgenmsgLen = 4

// decodeUDP returns the flow that a message of a dump describes. It returns false for
// other protocols, and for a message that is not an entry. It does not allocate, because
// most entries of a dump are not removed.
func decodeUDP(msg []byte) (flow, bool) {
	var f flow
	if len(msg) < nfgenmsgLen {
		return f, false
	}
	attrs := msg[nfgenmsgLen:]
	for len(attrs) > 0 {
		kind, data, rest, ok := nextAttr(attrs)
		if !ok {
			return flow{}, false
		}
		attrs = rest
		switch kind {
		case ctaTupleOrig:
			if f.dst, ok = decodeEnd(data, ctaIPv4Dst, ctaIPv6Dst, ctaProtoDstPort); !ok {
				return flow{}, false
			}
		case ctaTupleReply:
			if f.reply, ok = decodeEnd(data, ctaIPv4Src, ctaIPv6Src, ctaProtoSrcPort); !ok {
				return flow{}, false
			}
		}
		if f.dst.IsValid() && f.reply.IsValid() {
			return f, true
		}
	}
	return flow{}, false
}

// decodeEnd reads one end of a UDP tuple: the address in attribute v4 or v6
// and the port in attribute port.
func decodeEnd(tuple []byte, v4, v6, port uint16) (netip.AddrPort, bool) {
	var addr netip.Addr
	var number uint16
	var proto byte
	for len(tuple) > 0 {
		kind, nested, rest, ok := nextAttr(tuple)
		if !ok {
			return netip.AddrPort{}, false
		}
		tuple = rest
		for len(nested) > 0 && kind <= ctaTupleProto {
			inner, data, rest, ok := nextAttr(nested)
			if !ok {
				return netip.AddrPort{}, false
			}
			nested = rest
			switch {
			case kind == ctaTupleIP && (inner == v4 && len(data) == 4 || inner == v6 && len(data) == 16):
				addr, _ = netip.AddrFromSlice(data)
			case kind == ctaTupleProto && inner == ctaProtoNum && len(data) == 1:
				proto = data[0]
			case kind == ctaTupleProto && inner == port && len(data) == 2:
				number = binary.BigEndian.Uint16(data)
			}
		}
	}
	return netip.AddrPortFrom(addr, number), addr.IsValid() && proto == unix.IPPROTO_UDP
}

// nextAttr returns the first attribute of b, its type without flags, and what follows
// its padding. ok is false if it is malformed.
func nextAttr(b []byte) (kind uint16, data, rest []byte, ok bool) {
	if len(b) < unix.SizeofNlAttr {
		return 0, nil, nil, false
	}
	length := int(binary.NativeEndian.Uint16(b))
	if length < unix.SizeofNlAttr || length > len(b) {
		return 0, nil, nil, false
	}
	kind = binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
	next := min((length+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1), len(b))
	return kind, b[unix.SizeofNlAttr:length], b[next:], true
}
