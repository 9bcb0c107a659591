package eval

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
)

// Interface is a network interface; zero means no interface.
type Interface struct {
	Index uint32
	Name  string
}

// Packet is a packet with its metadata.
type Packet struct {
	// from the IPv4 or IPv6 header on
	Data []byte
	// In is zero for a packet of the node; Evaluate sets Out after the routing decision.
	In, Out Interface
	Mark    uint32
	Trace   bool
	Conn    *Conn
	// of a packet of the node itself
	Owner Owner
}

// Owner is the owner of a socket. Unknown fields are nil.
type Owner struct {
	UID, GID *uint32
	// net_cls.classid of cgroup v1, 0 without one
	Cgroup *uint32
}

// Conn is the connection of a packet in connection tracking.
type Conn struct {
	// bit of NF_CT_STATE_*
	State uint32
	Mark  uint32
	Reply bool
	// Addresses are translated. Packets after the first follow Original and Replies, and are
	// Undecided without the tuples.
	NAT bool
	// Incoming packets, in the direction of the first packet and in the other. Evaluate sets zero
	// tuples.
	Original, Replies Tuple
	// IPS_*; Evaluate adds the bits of a new connection
	Status uint32
}

// States of ct state.
const (
	StateInvalid     = 1 << 0
	StateEstablished = 1 << 1
	StateRelated     = 1 << 2
	StateNew         = 1 << 3
	StateUntracked   = 1 << 6
)

// Source is invalid in a malformed packet.
func (p *Packet) Source() netip.Addr { return p.address(false) }

// Destination is like Source.
func (p *Packet) Destination() netip.Addr { return p.address(true) }

func (p *Packet) address(destination bool) netip.Addr {
	at, n := addressAt(p.family(), destination)
	if n == 0 || len(p.Data) < at+n {
		return netip.Addr{}
	}
	addr, _ := netip.AddrFromSlice(p.Data[at : at+n])
	return addr
}

func addressAt(family nft.Family, destination bool) (at, n int) {
	switch family {
	case nft.FamilyIP:
		at, n = 12, 4
	case nft.FamilyIP6:
		at, n = 8, 16
	}
	if destination {
		at += n
	}
	return at, n
}

func (p *Packet) family() nft.Family {
	if len(p.Data) == 0 {
		return 0
	}
	switch p.Data[0] >> 4 {
	case 4:
		return nft.FamilyIP
	case 6:
		return nft.FamilyIP6
	default:
		return 0
	}
}

type headers struct {
	family    nft.Family
	protocol  uint8
	transport int
	fragment  bool
}

func (p *Packet) parse() (headers, error) {
	h := headers{family: p.family()}
	switch h.family {
	case nft.FamilyIP:
		if len(p.Data) < 20 {
			return h, errors.New("the IPv4 header is cut off")
		}
		h.transport, h.protocol = int(p.Data[0]&15)*4, p.Data[9]
		h.fragment = binary.BigEndian.Uint16(p.Data[6:])&0x1fff != 0
		if total := int(binary.BigEndian.Uint16(p.Data[2:])); h.transport < 20 || h.transport > total || total != len(p.Data) {
			return h, fmt.Errorf("the IPv4 header has the lengths %d and %d: the packet has %d bytes", h.transport, total, len(p.Data))
		}
		return h, nil
	case nft.FamilyIP6:
		if len(p.Data) < 40 || 40+int(binary.BigEndian.Uint16(p.Data[4:])) != len(p.Data) {
			return h, fmt.Errorf("the IPv6 header and its length do not fit the packet of %d bytes", len(p.Data))
		}
		h.transport, h.protocol = 40, p.Data[6]
		for slices.Contains([]uint8{unix.IPPROTO_HOPOPTS, unix.IPPROTO_ROUTING, unix.IPPROTO_DSTOPTS}, h.protocol) {
			if len(p.Data) < h.transport+8 {
				return h, errors.New("an extension header of IPv6 is cut off")
			}
			h.protocol, h.transport = p.Data[h.transport], h.transport+8+8*int(p.Data[h.transport+1])
		}
		if h.protocol == unix.IPPROTO_FRAGMENT {
			return h, errors.New("fragments of IPv6 are not possible")
		}
		return h, nil
	default:
		return h, errors.New("the packet has neither an IPv4 nor an IPv6 header")
	}
}

func (p *Packet) checksumAt(h headers) int {
	at := -1
	switch h.protocol {
	case unix.IPPROTO_TCP:
		at = h.transport + 16
	case unix.IPPROTO_UDP:
		at = h.transport + 6
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		at = h.transport + 2
	}
	if at < 0 || h.fragment || len(p.Data) < at+2 || h.protocol == unix.IPPROTO_UDP && p.Data[at] == 0 && p.Data[at+1] == 0 {
		return -1
	}
	return at
}

// write changes a copy and corrects the checksums, the transport's too if pseudo.
func (p *Packet) write(h headers, at int, value []byte, pseudo bool) {
	data := slices.Clone(p.Data)
	old := data[at : at+len(value)]
	sums := []int{}
	if h.family == nft.FamilyIP && at < h.transport {
		sums = append(sums, 10)
	}
	if sum := p.checksumAt(h); sum >= 0 && (pseudo || at >= h.transport) {
		// ICMP's checksum does not cover the addresses
		if h.protocol != unix.IPPROTO_ICMP || at >= h.transport {
			sums = append(sums, sum)
		}
	}
	for _, sum := range sums {
		c := adjust(binary.BigEndian.Uint16(data[sum:]), old, value, at&1 != 0)
		if c == 0 && h.protocol == unix.IPPROTO_UDP && sum != 10 {
			c = 0xffff
		}
		binary.BigEndian.PutUint16(data[sum:], c)
	}
	copy(old, value)
	p.Data = data
}

// adjust updates a checksum as in RFC 1624. odd means that the first byte is the second half of a
// word.
func adjust(sum uint16, old, value []byte, odd bool) uint16 {
	s := uint32(^sum)
	for i := range value {
		before, after := uint32(old[i]), uint32(value[i])
		if (i&1 != 0) == odd {
			before, after = before<<8, after<<8
		}
		s += 0xffff&^before + after
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}
