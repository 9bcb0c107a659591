package explain

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

type flow struct {
	source, destination netip.AddrPort
	protocol            uint8
}

var protocols = map[string]uint8{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP, "sctp": unix.IPPROTO_SCTP, "icmp": unix.IPPROTO_ICMP}

func protocolName(p uint8) string {
	if p == unix.IPPROTO_ICMPV6 {
		return "icmp"
	}
	for name, n := range protocols {
		if n == p {
			return name
		}
	}
	return fmt.Sprintf("protocol %d", p)
}

func hasPorts(p uint8) bool {
	return p == unix.IPPROTO_TCP || p == unix.IPPROTO_UDP || p == unix.IPPROTO_SCTP
}

// packet returns the flow's first packet (a SYN, a datagram, an INIT or an echo request), or its
// reply.
func (f flow) packet(reply bool) []byte {
	var transport []byte
	switch f.protocol {
	case unix.IPPROTO_TCP:
		transport = make([]byte, 20)
		transport[12], transport[13] = 5<<4, 0x02
		if reply {
			transport[13] = 0x12
		}
		binary.BigEndian.PutUint16(transport[14:], 64240)
	case unix.IPPROTO_UDP:
		transport = make([]byte, 8+1)
		binary.BigEndian.PutUint16(transport[4:], uint16(len(transport)))
	case unix.IPPROTO_SCTP:
		transport = make([]byte, 12+20)
		transport[12] = 1
		if reply {
			transport[12] = 2
		}
		binary.BigEndian.PutUint16(transport[14:], 20)
	default:
		transport = []byte{8, 0, 0, 0, 0, 1, 0, 1}
		switch six := f.source.Addr().Is6(); {
		case six && reply:
			transport[0] = 129
		case six:
			transport[0] = 128
		case reply:
			transport[0] = 0
		}
	}
	if hasPorts(f.protocol) {
		binary.BigEndian.PutUint16(transport, f.source.Port())
		binary.BigEndian.PutUint16(transport[2:], f.destination.Port())
	}
	src, dst := f.source.Addr().AsSlice(), f.destination.Addr().AsSlice()
	if f.source.Addr().Is4() {
		head := make([]byte, 20)
		head[0], head[8], head[9] = 0x45, 64, f.protocol
		binary.BigEndian.PutUint16(head[2:], uint16(len(head)+len(transport)))
		copy(head[12:], src)
		copy(head[16:], dst)
		return append(head, transport...)
	}
	head := make([]byte, 40)
	head[0], head[6], head[7] = 0x60, f.protocol, 64
	binary.BigEndian.PutUint16(head[4:], uint16(len(transport)))
	copy(head[8:], src)
	copy(head[24:], dst)
	return append(head, transport...)
}

// flowOfHeaders reads the headers of a trace's event, which may be cut. The kernel passes the
// transport header separately, after extension headers.
func flowOfHeaders(network, transport []byte) (f flow, ok bool) {
	switch {
	case len(network) >= 20 && network[0]>>4 == 4:
		network = append(slices.Clone(network[:20]), transport...)
	case len(network) >= 40 && network[0]>>4 == 6:
		network = append(slices.Clone(network[:40]), transport...)
	default:
		return f, false
	}
	return flowOf(append(network, make([]byte, 4)...)), true
}

// flowOf reads a packet from flow.packet after translation.
func flowOf(data []byte) flow {
	var f flow
	var src, dst netip.Addr
	transport := 40
	if data[0]>>4 == 4 {
		src, _ = netip.AddrFromSlice(data[12:16])
		dst, _ = netip.AddrFromSlice(data[16:20])
		f.protocol, transport = data[9], 20
	} else {
		src, _ = netip.AddrFromSlice(data[8:24])
		dst, _ = netip.AddrFromSlice(data[24:40])
		f.protocol = data[6]
	}
	var sport, dport uint16
	if hasPorts(f.protocol) {
		sport, dport = binary.BigEndian.Uint16(data[transport:]), binary.BigEndian.Uint16(data[transport+2:])
	}
	f.source, f.destination = netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport)
	return f
}
