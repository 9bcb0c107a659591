package lint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"strings"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
)

// for documentation (RFC 5737, RFC 3849), or seldom named
var (
	anySource      = map[nft.Family]netip.Addr{nft.FamilyIP: netip.MustParseAddr("198.51.100.77"), nft.FamilyIP6: netip.MustParseAddr("2001:db8:77::77")}
	anyDestination = map[nft.Family]netip.Addr{nft.FamilyIP: netip.MustParseAddr("203.0.113.99"), nft.FamilyIP6: netip.MustParseAddr("2001:db8:99::99")}
	anyIn          = eval.Interface{Index: 9001, Name: "weft-any-in"}
	anyOut         = eval.Interface{Index: 9002, Name: "weft-any-out"}
)

const (
	anySourcePort      = 40_123
	anyDestinationPort = 20_123
)

func witness(b eval.BaseChain, family nft.Family, way []step) (p eval.Packet, ok bool) {
	s := newSolver(b.Table)
	s.require(google.MetaKeyNFPROTO, []byte{byte(family)})
	s.require(google.MetaKeyPROTOCOL, binary.BigEndian.AppendUint16(nil, map[nft.Family]uint16{nft.FamilyIP: unix.ETH_P_IP, nft.FamilyIP6: unix.ETH_P_IPV6}[family]))
	for _, at := range way {
		s.rule(at.rule, at.to)
	}
	if s.contradicted {
		return p, false
	}
	return s.packet(family, b.Base.Hook), true
}

func (s *solver) require(key google.MetaKey, value []byte) {
	if x, ok := newOperand(fieldOf(s.meta, uint32(key)), 0, len(value)); ok {
		x.set(value, true)
	}
}

func (s *solver) protocol(family nft.Family) uint8 {
	at := 9
	if family == nft.FamilyIP6 {
		at = 6
	}
	if f := s.meta[uint32(google.MetaKeyL4PROTO)]; f != nil && f.has(0, 1) {
		return f.value[0]
	}
	if s.network.has(at, 1) {
		return s.network.value[at]
	}
	return unix.IPPROTO_TCP
}

func (s *solver) packet(family nft.Family, hook uint32) eval.Packet {
	conn := s.conn()
	protocol := s.protocol(family)
	transport := transportHeader(protocol, conn.State == eval.StateNew)
	s.transport.overlay(transport)
	var network []byte
	source, destination := anySource[family].AsSlice(), anyDestination[family].AsSlice()
	if family == nft.FamilyIP {
		network = append([]byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0}, append(source, destination...)...)
		s.network.overlay(network)
		network[0], network[9] = 0x45, protocol
		binary.BigEndian.PutUint16(network[2:], uint16(len(network)+len(transport))) //nolint:gosec // less than 100
	} else {
		network = append([]byte{0x60, 0, 0, 0, 0, 0, protocol, 64}, append(source, destination...)...)
		s.network.overlay(network)
		network[0], network[6] = 0x60|network[0]&15, protocol
		binary.BigEndian.PutUint16(network[4:], uint16(len(transport))) //nolint:gosec // at most 20
	}
	p := eval.Packet{Data: append(network, transport...), Conn: conn}
	if f := s.meta[uint32(google.MetaKeyMARK)]; f != nil {
		p.Mark = binary.NativeEndian.Uint32(f.value[:])
	}
	if hook != unix.NF_INET_LOCAL_OUT {
		p.In = s.interfaceOf(google.MetaKeyIIFNAME, google.MetaKeyIIF, anyIn)
	}
	if hook == unix.NF_INET_FORWARD || hook == unix.NF_INET_LOCAL_OUT || hook == unix.NF_INET_POST_ROUTING {
		p.Out = s.interfaceOf(google.MetaKeyOIFNAME, google.MetaKeyOIF, anyOut)
	}
	return p
}

func (s *solver) conn() *eval.Conn {
	c := &eval.Conn{State: eval.StateNew}
	number := func(key uint32) uint32 {
		if f := s.ct[key]; f != nil {
			return binary.NativeEndian.Uint32(f.value[:])
		}
		return 0
	}
	if state := number(unix.NFT_CT_STATE); state != 0 && state&eval.StateNew == 0 {
		c.State = 1 << bits.TrailingZeros32(state)
	}
	c.Status, c.Mark = number(unix.NFT_CT_STATUS), number(unix.NFT_CT_MARK)
	if f := s.ct[unix.NFT_CT_DIRECTION]; f != nil {
		c.Reply = f.value[0] != 0
	}
	return c
}

func (s *solver) interfaceOf(name, index google.MetaKey, other eval.Interface) eval.Interface {
	if f := s.meta[uint32(name)]; f != nil && f.has(0, unix.IFNAMSIZ) {
		text, _, _ := bytes.Cut(f.value[:unix.IFNAMSIZ], []byte{0})
		other.Name = string(text)
	}
	if f := s.meta[uint32(index)]; f != nil && f.has(0, 4) {
		other.Index = binary.NativeEndian.Uint32(f.value[:])
		if other.Index == 1 {
			other.Name = "lo"
		}
	}
	if other.Name == "lo" {
		other.Index = 1
	}
	return other
}

func transportHeader(protocol uint8, first bool) []byte {
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, anySourcePort), anyDestinationPort)
	switch protocol {
	case unix.IPPROTO_TCP:
		flags := byte(0x10) // ACK
		if first {
			flags = 0x02 // SYN
		}
		return append(ports, 0, 0, 0, 0, 0, 0, 0, 0, 5<<4, flags, 0xff, 0xff, 0, 0, 0, 0)
	case unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE:
		return append(ports, 0, 8, 0, 0)
	case unix.IPPROTO_ICMP:
		return []byte{8, 0, 0, 0, 0, 1, 0, 1}
	case unix.IPPROTO_ICMPV6:
		return []byte{128, 0, 0, 0, 0, 1, 0, 1}
	default:
		return append(ports, make([]byte, 16)...)
	}
}

func host(hook uint32) eval.Host {
	return eval.Host{AddressType: func(a netip.Addr) (uint32, bool) {
		switch {
		case a.IsMulticast():
			return unix.RTN_MULTICAST, true
		case a.IsLoopback(), hook == unix.NF_INET_LOCAL_IN && (a == anyDestination[nft.FamilyIP] || a == anyDestination[nft.FamilyIP6]):
			return unix.RTN_LOCAL, true
		case a == anySource[nft.FamilyIP], a == anySource[nft.FamilyIP6], a == anyDestination[nft.FamilyIP], a == anyDestination[nft.FamilyIP6]:
			return unix.RTN_UNICAST, true
		default:
			return 0, false
		}
	}}
}

var protocolNames = map[uint8]string{unix.IPPROTO_TCP: "TCP", unix.IPPROTO_UDP: "UDP", unix.IPPROTO_SCTP: "SCTP", unix.IPPROTO_ICMP: "ICMP", unix.IPPROTO_ICMPV6: "ICMPv6"}

func describe(p *eval.Packet) string {
	at, protocol := 20, p.Data[9]
	if p.Data[0]>>4 == 6 {
		at, protocol = 40, p.Data[6]
	}
	name, ok := protocolNames[protocol]
	if !ok {
		name = fmt.Sprintf("protocol %d", protocol)
	}
	source, destination := p.Source().String(), p.Destination().String()
	if protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_UDP || protocol == unix.IPPROTO_SCTP {
		source = netip.AddrPortFrom(p.Source(), binary.BigEndian.Uint16(p.Data[at:])).String()
		destination = netip.AddrPortFrom(p.Destination(), binary.BigEndian.Uint16(p.Data[at+2:])).String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s to %s", name, source, destination)
	if p.In.Name != "" && p.In.Name != anyIn.Name {
		fmt.Fprintf(&b, ", in through %s", p.In.Name)
	}
	if p.Out.Name != "" && p.Out.Name != anyOut.Name {
		fmt.Fprintf(&b, ", out through %s", p.Out.Name)
	}
	if p.Mark != 0 {
		fmt.Fprintf(&b, ", mark %#x", p.Mark)
	}
	state := map[uint32]string{eval.StateNew: "the first of its connection", eval.StateEstablished: "of an established connection", eval.StateRelated: "of a related connection"}[p.Conn.State]
	if state == "" {
		state = "of no valid connection"
	}
	fmt.Fprintf(&b, ", %s", state)
	return b.String()
}
