package conntrack

import (
	"encoding/binary"
	"net/netip"
)

// Entry is an entry of the table. For ICMP and ICMPv6, the source's port is the identifier, and the
// destination's port is the type times 256 plus the code.
type Entry struct {
	Protocol uint8
	// The first packet, before address translation.
	Source, Destination netip.AddrPort
	// The arriving reply packets.
	ReplySource, ReplyDestination netip.AddrPort
	// Zone is of the original direction.
	Zone uint16
	// ID depends on the entry's address in the kernel's memory.
	ID uint32
	// SeenReply means packets of both directions. The kernel keeps Assured entries when the table
	// is full.
	SeenReply, Assured bool
	// Translated means that nat rules changed the destination.
	Translated bool
	// TCPState is the kernel's enum tcp_conntrack; 0 for other protocols.
	TCPState uint8
	// Accounted means that the kernel counts bytes (net.netfilter.nf_conntrack_acct).
	Accounted                 bool
	OriginalBytes, ReplyBytes uint64
}

// CTA_STATUS (enum ip_conntrack_status in linux/netfilter/nf_conntrack_common.h).
const (
	statusSeenReply = 1 << 1
	statusAssured   = 1 << 2
	statusDstNAT    = 1 << 5
)

// decode returns false, and leaves e undefined, for other messages and for entries not selected by
// s. It does not allocate.
func (e *Entry) decode(msg []byte, s selector) bool {
	*e = Entry{}
	if len(msg) < nfgenmsgLen {
		return false
	}
	selected := false
	return eachAttr(msg[nfgenmsgLen:], func(kind uint16, data []byte) bool {
		ok := true
		switch kind {
		case ctaTupleOrig:
			ok = e.decodeTuple(data, &e.Source, &e.Destination)
		case ctaTupleReply:
			ok = e.decodeTuple(data, &e.ReplySource, &e.ReplyDestination)
		case ctaStatus:
			if len(data) == 4 {
				status := binary.BigEndian.Uint32(data)
				e.SeenReply, e.Assured, e.Translated = status&statusSeenReply != 0, status&statusAssured != 0, status&statusDstNAT != 0
			}
		case ctaProtoInfo:
			ok = e.decodeProtoInfo(data)
		case ctaZone:
			if len(data) == 2 {
				e.Zone = binary.BigEndian.Uint16(data)
			}
		case ctaCountersOrig:
			e.Accounted = true
			ok = decodeBytes(data, &e.OriginalBytes)
		case ctaCountersReply:
			ok = decodeBytes(data, &e.ReplyBytes)
		case ctaID:
			if len(data) == 4 {
				e.ID = binary.BigEndian.Uint32(data)
			}
		}
		// the kernel sends the tuples first, and most entries are not selected
		if ok && !selected && e.Source.IsValid() && e.ReplySource.IsValid() {
			selected = s.selects(e)
			return selected
		}
		return ok
	}) && selected
}

func (e *Entry) decodeTuple(tuple []byte, source, destination *netip.AddrPort) bool {
	var src, dst netip.Addr
	var ports tuplePorts
	ok := eachAttr(tuple, func(kind uint16, nested []byte) bool {
		if kind == ctaTupleZone && source == &e.Source && len(nested) == 2 {
			e.Zone = binary.BigEndian.Uint16(nested)
		}
		return kind > ctaTupleProto || eachAttr(nested, func(inner uint16, data []byte) bool {
			switch {
			case kind == ctaTupleProto:
				ports.decode(inner, data)
			case inner == ctaIPv4Src && len(data) == 4, inner == ctaIPv6Src && len(data) == 16:
				src, _ = netip.AddrFromSlice(data)
			case inner == ctaIPv4Dst && len(data) == 4, inner == ctaIPv6Dst && len(data) == 16:
				dst, _ = netip.AddrFromSlice(data)
			}
			return true
		})
	})
	e.Protocol = ports.protocol
	*source, *destination = netip.AddrPortFrom(src, ports.source), netip.AddrPortFrom(dst, ports.destination)
	return ok && src.IsValid() && dst.IsValid() && src.Is4() == dst.Is4()
}

type tuplePorts struct {
	protocol            uint8
	source, destination uint16
}

func (p *tuplePorts) decode(kind uint16, data []byte) {
	switch {
	case kind == ctaProtoNum && len(data) == 1:
		p.protocol = data[0]
	case len(data) == 2 && (kind == ctaProtoSrcPort || kind == ctaProtoICMPID || kind == ctaProtoICMPv6ID):
		p.source = binary.BigEndian.Uint16(data)
	case len(data) == 2 && kind == ctaProtoDstPort:
		p.destination = binary.BigEndian.Uint16(data)
	case len(data) == 1 && (kind == ctaProtoICMPType || kind == ctaProtoICMPv6Type):
		p.destination |= uint16(data[0]) << 8
	case len(data) == 1 && (kind == ctaProtoICMPCode || kind == ctaProtoICMPv6Code):
		p.destination |= uint16(data[0])
	}
}

func (e *Entry) decodeProtoInfo(info []byte) bool {
	return eachAttr(info, func(kind uint16, nested []byte) bool {
		return kind != ctaProtoInfoTCP || eachAttr(nested, func(inner uint16, data []byte) bool {
			if inner == ctaProtoInfoTCPState && len(data) == 1 {
				e.TCPState = data[0]
			}
			return true
		})
	})
}

func decodeBytes(counters []byte, bytes *uint64) bool {
	return eachAttr(counters, func(kind uint16, data []byte) bool {
		if kind == ctaCountersBytes && len(data) == 8 {
			*bytes = binary.BigEndian.Uint64(data)
		}
		return true
	})
}
