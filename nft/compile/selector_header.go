package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
)

// layer is a protocol layer of a packet. Minus one, it is the kernel's
// payload base (NFT_PAYLOAD_LL_HEADER, ...).
type layer uint8

const (
	layerNone layer = iota
	layerLink
	layerNetwork
	layerTransport
	layers
)

// header is a protocol: the fields of its header and the protocols that it
// carries. Headers are compared by pointer.
type header struct {
	name  string
	layer layer
	// key is the meta key that tells what the header carries, as nft uses it
	// for implicit dependencies; empty where nothing is carried.
	key    string
	uppers []upper
	fields []field
	// raw headers are used without knowing the protocol ("th").
	raw bool
}

// upper is a protocol that a header carries, with its number in the key.
type upper struct {
	num    uint64
	header func() *header
}

// field is a field of a header. Offsets and widths are in bits.
type field struct {
	name         string
	typ          *datatype.Type
	offset, bits uint32
	// protocol is true for the field that names what the header carries.
	protocol bool
	// icmpTypes are the types of ICMP messages that have the field; the rule
	// must match one of them.
	icmpTypes []uint64
}

// number returns the number of a protocol that h carries.
func (h *header) number(up *header) (uint64, bool) {
	for _, u := range h.uppers {
		if u.header() == up {
			return u.num, true
		}
	}
	return 0, false
}

// field returns the field of a name, or nil.
func (h *header) field(name string) *field {
	for i := range h.fields {
		if h.fields[i].name == name {
			return &h.fields[i]
		}
	}
	return nil
}

// headerByName returns the header that a selector names, or nil.
func headerByName(name string) *header {
	for _, h := range [...]*header{&headerIP, &headerIP6, &headerTCP, &headerUDP, &headerSCTP, &headerTH, &headerICMP, &headerICMPv6} {
		if h.name == name {
			return h
		}
	}
	return nil
}

// The protocol numbers of linux/in.h, and the Ethernet types of
// linux/if_ether.h.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132
	etherIP     = 0x0800
	etherIP6    = 0x86dd
)

// transports are the transport protocols of this vocabulary. ICMP belongs to
// IPv4 and ICMPv6 to IPv6 as nft generates dependencies, but both are found in
// either when a rule matches the protocol number.
var transports = []upper{
	{protoICMP, func() *header { return &headerICMP }},
	{protoUDP, func() *header { return &headerUDP }},
	{protoTCP, func() *header { return &headerTCP }},
	{protoSCTP, func() *header { return &headerSCTP }},
	{protoICMPv6, func() *header { return &headerICMPv6 }},
}

// networks are the network protocols by nf_proto, etherNetworks by Ethernet
// type.
var (
	networks = []upper{
		{uint64(nfprotoIPv4), func() *header { return &headerIP }},
		{uint64(nfprotoIPv6), func() *header { return &headerIP6 }},
	}
	etherNetworks = []upper{
		{etherIP, func() *header { return &headerIP }},
		{etherIP6, func() *header { return &headerIP6 }},
	}
)

// nf_proto values (linux/netfilter.h).
const (
	nfprotoInet = 1
	nfprotoIPv4 = 2
	nfprotoIPv6 = 10
)

// The headers below the network layer that this vocabulary has no fields of:
// inet tables know the network protocol by meta nfproto, bridge and netdev
// tables by meta protocol. headerService stands for a network layer that is
// not known, headerUnknown for a protocol that has no header here.
var (
	headerInet    = header{name: "inet", layer: layerLink, key: "nfproto", uppers: networks}
	headerLink    = header{name: "netdev", layer: layerLink, key: "protocol", uppers: etherNetworks}
	headerService = header{name: "inet-service", layer: layerNetwork, key: "l4proto", uppers: transports}
	headerUnknown = header{name: "unknown"}
	headerARP     = header{name: "arp", layer: layerNetwork}
)

var headerIP = header{
	name: "ip", layer: layerNetwork, key: "l4proto", uppers: transports,
	fields: []field{
		{name: "version", typ: datatype.Integer, offset: 0, bits: 4},
		{name: "hdrlength", typ: datatype.Integer, offset: 4, bits: 4},
		{name: "dscp", typ: datatype.DSCP, offset: 8, bits: 6},
		{name: "ecn", typ: datatype.ECN, offset: 14, bits: 2},
		{name: "length", typ: datatype.Integer, offset: 16, bits: 16},
		{name: "id", typ: datatype.Integer, offset: 32, bits: 16},
		{name: "frag-off", typ: datatype.Integer, offset: 48, bits: 16},
		{name: "ttl", typ: datatype.Integer, offset: 64, bits: 8},
		{name: "protocol", typ: datatype.InetProto, offset: 72, bits: 8, protocol: true},
		{name: "checksum", typ: datatype.Integer, offset: 80, bits: 16},
		{name: "saddr", typ: datatype.IPv4Addr, offset: 96, bits: 32},
		{name: "daddr", typ: datatype.IPv4Addr, offset: 128, bits: 32},
	},
}

var headerIP6 = header{
	name: "ip6", layer: layerNetwork, key: "l4proto", uppers: transports,
	fields: []field{
		{name: "version", typ: datatype.Integer, offset: 0, bits: 4},
		{name: "dscp", typ: datatype.DSCP, offset: 4, bits: 6},
		{name: "ecn", typ: datatype.ECN, offset: 10, bits: 2},
		{name: "flowlabel", typ: datatype.Integer, offset: 12, bits: 20},
		{name: "length", typ: datatype.Integer, offset: 32, bits: 16},
		{name: "nexthdr", typ: datatype.InetProto, offset: 48, bits: 8, protocol: true},
		{name: "hoplimit", typ: datatype.Integer, offset: 56, bits: 8},
		{name: "saddr", typ: datatype.IPv6Addr, offset: 64, bits: 128},
		{name: "daddr", typ: datatype.IPv6Addr, offset: 192, bits: 128},
	},
}

var headerTCP = header{
	name: "tcp", layer: layerTransport,
	fields: []field{
		{name: "sport", typ: datatype.InetService, offset: 0, bits: 16},
		{name: "dport", typ: datatype.InetService, offset: 16, bits: 16},
		{name: "sequence", typ: datatype.Integer, offset: 32, bits: 32},
		{name: "ackseq", typ: datatype.Integer, offset: 64, bits: 32},
		{name: "doff", typ: datatype.Integer, offset: 96, bits: 4},
		{name: "reserved", typ: datatype.Integer, offset: 100, bits: 4},
		{name: "flags", typ: datatype.TCPFlag, offset: 104, bits: 8},
		{name: "window", typ: datatype.Integer, offset: 112, bits: 16},
		{name: "checksum", typ: datatype.Integer, offset: 128, bits: 16},
		{name: "urgptr", typ: datatype.Integer, offset: 144, bits: 16},
	},
}

var headerUDP = header{
	name: "udp", layer: layerTransport,
	fields: []field{
		{name: "sport", typ: datatype.InetService, offset: 0, bits: 16},
		{name: "dport", typ: datatype.InetService, offset: 16, bits: 16},
		{name: "length", typ: datatype.Integer, offset: 32, bits: 16},
		{name: "checksum", typ: datatype.Integer, offset: 48, bits: 16},
	},
}

var headerSCTP = header{
	name: "sctp", layer: layerTransport,
	fields: []field{
		{name: "sport", typ: datatype.InetService, offset: 0, bits: 16},
		{name: "dport", typ: datatype.InetService, offset: 16, bits: 16},
		{name: "vtag", typ: datatype.Integer, offset: 32, bits: 32},
		{name: "checksum", typ: datatype.Integer, offset: 64, bits: 32},
	},
}

// headerTH is what TCP, UDP and SCTP have in common; it adds no dependency.
var headerTH = header{
	name: "th", layer: layerTransport, raw: true,
	fields: []field{
		{name: "sport", typ: datatype.InetService, offset: 0, bits: 16},
		{name: "dport", typ: datatype.InetService, offset: 16, bits: 16},
	},
}

// ICMP message types that decide which fields a message has (linux/icmp.h,
// linux/icmpv6.h). For messages that come in pairs nft checks the request
// before the reply.
var headerICMP = header{
	name: "icmp", layer: layerTransport,
	fields: []field{
		{name: "type", typ: datatype.ICMPType, offset: 0, bits: 8, protocol: true},
		{name: "code", typ: datatype.ICMPCode, offset: 8, bits: 8},
		{name: "checksum", typ: datatype.Integer, offset: 16, bits: 16},
		{name: "id", typ: datatype.Integer, offset: 32, bits: 16, icmpTypes: []uint64{8, 0}},
		{name: "sequence", typ: datatype.Integer, offset: 48, bits: 16, icmpTypes: []uint64{8, 0}},
		{name: "gateway", typ: datatype.Integer, offset: 32, bits: 32, icmpTypes: []uint64{5}},
		{name: "mtu", typ: datatype.Integer, offset: 48, bits: 16, icmpTypes: []uint64{3}},
	},
}

var headerICMPv6 = header{
	name: "icmpv6", layer: layerTransport,
	fields: []field{
		{name: "type", typ: datatype.ICMPv6Type, offset: 0, bits: 8, protocol: true},
		{name: "code", typ: datatype.ICMPv6Code, offset: 8, bits: 8},
		{name: "checksum", typ: datatype.Integer, offset: 16, bits: 16},
		{name: "mtu", typ: datatype.Integer, offset: 32, bits: 32, icmpTypes: []uint64{2}},
		{name: "id", typ: datatype.Integer, offset: 32, bits: 16, icmpTypes: []uint64{128, 129}},
		{name: "sequence", typ: datatype.Integer, offset: 48, bits: 16, icmpTypes: []uint64{128, 129}},
		{name: "max-delay", typ: datatype.Integer, offset: 32, bits: 16, icmpTypes: []uint64{130}},
	},
}
