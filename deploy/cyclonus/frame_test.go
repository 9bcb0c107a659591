package cyclonus

import (
	"encoding/binary"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// The flags of TCP segments.
const (
	tcpSYN = 0x02
	tcpACK = 0x10
)

type segment struct {
	policytest.Flow
	source uint16
	// 0 for UDP
	flags byte
}

// reply answers the first segment of a connection.
func (s segment) reply() segment {
	r := segment{policytest.Flow{From: s.To, To: s.From, Protocol: s.Protocol, Port: int32(s.source)}, uint16(s.Port), 0}
	if s.flags != 0 {
		r.flags = tcpSYN | tcpACK
	}
	return r
}

const (
	ethernetHeader = 14
	ipv4Header     = 20
	ipv6Header     = 40
	udpHeader      = 8
	tcpHeader      = 20
)

// frame is an Ethernet frame from a pod to its gateway. Conntrack verifies the checksums.
func (s segment) frame(from, gateway net.HardwareAddr) []byte {
	transport := s.transport()
	f := append(append(make([]byte, 0, 128), gateway...), from...)
	if s.From.Is4() {
		f = append(f, 0x08, 0x00)
		ip := make([]byte, ipv4Header)
		ip[0], ip[8], ip[9] = 0x45, 64, s.number()
		binary.BigEndian.PutUint16(ip[2:], uint16(ipv4Header+len(transport)))
		copy(ip[12:], s.From.AsSlice())
		copy(ip[16:], s.To.AsSlice())
		binary.BigEndian.PutUint16(ip[10:], checksum(ip))
		f = append(f, ip...)
	} else {
		f = append(f, 0x86, 0xdd)
		ip := make([]byte, ipv6Header)
		ip[0], ip[6], ip[7] = 0x60, s.number(), 64
		binary.BigEndian.PutUint16(ip[4:], uint16(len(transport)))
		copy(ip[8:], s.From.AsSlice())
		copy(ip[24:], s.To.AsSlice())
		f = append(f, ip...)
	}
	return append(f, transport...)
}

func (s segment) number() byte {
	switch s.Protocol {
	case corev1.ProtocolUDP:
		return 17
	case corev1.ProtocolTCP:
		return 6
	default:
		panic(fmt.Sprintf("cyclonus: segment of protocol %q", s.Protocol))
	}
}

// The first byte of a connection has the sequence number 1 in both directions.
func (s segment) transport() []byte {
	var b []byte
	at := 6
	if s.Protocol == corev1.ProtocolUDP {
		b = make([]byte, udpHeader)
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	} else {
		b, at = make([]byte, tcpHeader), 16
		if s.flags&tcpSYN == 0 {
			binary.BigEndian.PutUint32(b[4:], 1)
		}
		if s.flags&tcpACK != 0 {
			binary.BigEndian.PutUint32(b[8:], 1)
		}
		b[12], b[13] = tcpHeader/4<<4, s.flags
		binary.BigEndian.PutUint16(b[14:], 0xffff)
	}
	binary.BigEndian.PutUint16(b[0:], s.source)
	binary.BigEndian.PutUint16(b[2:], uint16(s.Port))
	pseudo := append(append([]byte{}, s.From.AsSlice()...), s.To.AsSlice()...)
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(b)))
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(s.number()))
	binary.BigEndian.PutUint16(b[at:], checksum(append(pseudo, b...)))
	return b
}

// for an even number of bytes
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func netDevice(do func(func() error) error, link string) (addr net.HardwareAddr, index int, err error) {
	err = do(func() error {
		i, err := net.InterfaceByName(link)
		if err == nil {
			addr, index = i.HardwareAddr, i.Index
		}
		return err
	})
	return addr, index, err
}
