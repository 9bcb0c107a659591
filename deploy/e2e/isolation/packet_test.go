package isolation

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

type protocol struct {
	name string
	// the number in the header of IPv4 or IPv6
	number byte
	// the message type of ICMP or ICMPv6
	icmp byte
	// hop limit, 0 for 64
	hops byte
}

var (
	tcp      = protocol{name: "TCP", number: unix.IPPROTO_TCP}
	udp      = protocol{name: "UDP", number: unix.IPPROTO_UDP}
	sctp     = protocol{name: "SCTP", number: unix.IPPROTO_SCTP}
	ping     = protocol{name: "ICMP", number: unix.IPPROTO_ICMP, icmp: 8}
	ping6    = protocol{name: "ICMPv6", number: unix.IPPROTO_ICMPV6, icmp: 128}
	solicits = protocol{name: "router solicitation", number: unix.IPPROTO_ICMPV6, icmp: 133, hops: 255}
	router   = protocol{name: "router advertisement", number: unix.IPPROTO_ICMPV6, icmp: 134, hops: 255}
	neighbor = protocol{name: "neighbour solicitation", number: unix.IPPROTO_ICMPV6, icmp: 135, hops: 255}
	answer   = protocol{name: "neighbour advertisement", number: unix.IPPROTO_ICMPV6, icmp: 136, hops: 255}
	redirect = protocol{name: "redirect", number: unix.IPPROTO_ICMPV6, icmp: 137, hops: 255}
	// far looks routed, so every host rejects it.
	far = protocol{name: "neighbour solicitation with the hop limit 64", number: unix.IPPROTO_ICMPV6, icmp: 135}
)

// discovery reports a message of neighbour discovery, valid or not.
func (p protocol) discovery() bool { return p.number == unix.IPPROTO_ICMPV6 && p.icmp >= 133 }

const (
	// sourcePort is for all TCP and UDP packets; replies have another.
	sourcePort = 7
	// marked is the traffic class of packets that their protocol does not distinguish from others:
	// "dscp 0x2e" in the counting rules.
	marked = 0xb8
)

type packet struct {
	from, to net.HardwareAddr
	// VLAN tags before the packet's type
	tags     []byte
	src, dst netip.Addr
	protocol protocol
	// id is the case's number: the ID of IPv4 or the flow label of IPv6, and the destination port or
	// echo ID.
	id uint16
	// UDP ports in place of sourcePort and id
	ports [2]uint16
}

func (p *packet) class() byte {
	if p.protocol.discovery() || p.ports != [2]uint16{} {
		return marked
	}
	return 0
}

func (p *packet) frame() []byte {
	b := append(append([]byte(nil), p.to...), p.from...)
	b = append(b, p.tags...)
	payload := p.payload()
	if p.src.Is4() {
		b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IP)
		head := []byte{0x45, p.class(), 0, 0, 0, 0, 0, 0, 64, p.protocol.number, 0, 0}
		binary.BigEndian.PutUint16(head[2:], uint16(20+len(payload)))
		binary.BigEndian.PutUint16(head[4:], p.id)
		head = append(append(head, p.src.AsSlice()...), p.dst.AsSlice()...)
		binary.BigEndian.PutUint16(head[10:], checksum(head))
		return append(append(b, head...), payload...)
	}
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IPV6)
	b = binary.BigEndian.AppendUint32(b, 6<<28|uint32(p.class())<<20|uint32(p.id))
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	b = append(b, p.protocol.number, cmp.Or(p.protocol.hops, 64))
	return append(append(append(b, p.src.AsSlice()...), p.dst.AsSlice()...), payload...)
}

// payload follows the header of IPv4 or IPv6.
func (p *packet) payload() []byte {
	var b []byte
	at := 2 // of the checksum
	switch p.protocol.number {
	case unix.IPPROTO_TCP:
		b, at = make([]byte, 20), 16
		binary.BigEndian.PutUint32(b[4:], 1)
		b[12], b[13], b[14] = 5<<4, 1<<1, 4 // length, SYN, window
	case unix.IPPROTO_SCTP:
		b = make([]byte, 32)
		b[12], b[15], b[19], b[23], b[25], b[27] = 1, 20, 1, 1, 1, 1 // INIT, its length, tag, window and streams
	case unix.IPPROTO_UDP:
		b, at = make([]byte, 9), 6
		b[5] = 9
	default:
		b = make([]byte, 8)
		b[0] = p.protocol.icmp
		switch p.protocol {
		case neighbor, far:
			b = append(b, p.dst.AsSlice()...)
		case answer:
			b = append(b, p.src.AsSlice()...)
		case router:
			b = append(b, make([]byte, 8)...)
		case redirect:
			b = append(b, make([]byte, 32)...)
		case ping, ping6:
			binary.BigEndian.PutUint16(b[4:], p.id)
			b[7] = 1
		}
	}
	if p.protocol.icmp == 0 {
		binary.BigEndian.PutUint16(b, cmp.Or(p.ports[0], sourcePort))
		binary.BigEndian.PutUint16(b[2:], cmp.Or(p.ports[1], p.id))
	}
	if p.protocol == sctp {
		binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		return b
	}
	var pseudo []byte
	if p.protocol != ping {
		pseudo = append(p.src.AsSlice(), p.dst.AsSlice()...)
		pseudo = append(pseudo, 0, 0, 0, byte(len(b)), 0, 0, 0, p.protocol.number)
	}
	sum := checksum(append(pseudo, b...))
	if sum == 0 && p.protocol == udp {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(b[at:], sum)
	return b
}

// RFC 1071
func checksum(b []byte) uint16 {
	var sum uint32
	for i := range b {
		sum += uint32(b[i]) << (8 * uint(1-i%2))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
