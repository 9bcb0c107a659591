package selector

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

var HeaderTCP = Header{
	Name: "tcp", Desc: 8, Layer: LayerTransport, Checksum: checksum{checksumInet, 16},
	Fields: []Field{
		{Name: "sport", Type: datatype.InetService, Offset: 0, Bits: 16},
		{Name: "dport", Type: datatype.InetService, Offset: 16, Bits: 16},
		{Name: "sequence", Type: datatype.Integer, Offset: 32, Bits: 32},
		{Name: "ackseq", Type: datatype.Integer, Offset: 64, Bits: 32},
		{Name: "doff", Type: datatype.Integer, Offset: 96, Bits: 4},
		{Name: "reserved", Type: datatype.Integer, Offset: 100, Bits: 4},
		{Name: "flags", Type: datatype.TCPFlag, Offset: 104, Bits: 8},
		{Name: "window", Type: datatype.Integer, Offset: 112, Bits: 16},
		{Name: "checksum", Type: datatype.Integer, Offset: 128, Bits: 16},
		{Name: "urgptr", Type: datatype.Integer, Offset: 144, Bits: 16},
	},
}

var headerUDP = Header{
	Name: "udp", Desc: 6, Layer: LayerTransport, Checksum: checksum{checksumInet, 6},
	Fields: []Field{
		{Name: "sport", Type: datatype.InetService, Offset: 0, Bits: 16},
		{Name: "dport", Type: datatype.InetService, Offset: 16, Bits: 16},
		{Name: "length", Type: datatype.Integer, Offset: 32, Bits: 16},
		{Name: "checksum", Type: datatype.Integer, Offset: 48, Bits: 16},
	},
}

// The second word is the coverage of the checksum, which the kernel does not correct.
var headerUDPLite = Header{
	Name: "udplite", Desc: 7, Layer: LayerTransport,
	Fields: []Field{
		{Name: "sport", Type: datatype.InetService, Offset: 0, Bits: 16},
		{Name: "dport", Type: datatype.InetService, Offset: 16, Bits: 16},
		{Name: "csumcov", Type: datatype.Integer, Offset: 32, Bits: 16},
		{Name: "checksum", Type: datatype.Integer, Offset: 48, Bits: 16},
	},
}

var headerSCTP = Header{
	Name: "sctp", Desc: 10, Layer: LayerTransport, Checksum: checksum{checksumSCTP, 8},
	Fields: []Field{
		{Name: "sport", Type: datatype.InetService, Offset: 0, Bits: 16},
		{Name: "dport", Type: datatype.InetService, Offset: 16, Bits: 16},
		{Name: "vtag", Type: datatype.Integer, Offset: 32, Bits: 32},
		{Name: "checksum", Type: datatype.Integer, Offset: 64, Bits: 32},
	},
}

var headerDCCP = Header{
	Name: "dccp", Desc: 9, Layer: LayerTransport,
	Fields: []Field{
		{Name: "sport", Type: datatype.InetService, Offset: 0, Bits: 16},
		{Name: "dport", Type: datatype.InetService, Offset: 16, Bits: 16},
		{Name: "type", Type: datatype.DCCPPktType, Offset: 67, Bits: 4},
	},
}

// HeaderTH has the common fields of TCP, UDP, UDP-Lite, DCCP and SCTP, without a dependency.
var HeaderTH = Header{
	Name: "th", Desc: 11, Layer: LayerTransport, Raw: true,
	Fields: []Field{
		{Name: "sport", Type: datatype.InetService, Offset: 0, Bits: 16},
		{Name: "dport", Type: datatype.InetService, Offset: 16, Bits: 16},
	},
}

var headerAH = Header{
	Name: "ah", Desc: 1, Layer: LayerTransport, Uppers: secured,
	Fields: []Field{
		{Name: "nexthdr", Type: datatype.InetProto, Offset: 0, Bits: 8, Protocol: true},
		{Name: "hdrlength", Type: datatype.Integer, Offset: 8, Bits: 8},
		{Name: "reserved", Type: datatype.Integer, Offset: 16, Bits: 16},
		{Name: "spi", Type: datatype.Integer, Offset: 32, Bits: 32},
		{Name: "sequence", Type: datatype.Integer, Offset: 64, Bits: 32},
	},
}

var headerESP = Header{
	Name: "esp", Desc: 2, Layer: LayerTransport,
	Fields: []Field{
		{Name: "spi", Type: datatype.Integer, Offset: 0, Bits: 32},
		{Name: "sequence", Type: datatype.Integer, Offset: 32, Bits: 32},
	},
}

var headerComp = Header{
	Name: "comp", Desc: 3, Layer: LayerTransport, Uppers: secured,
	Fields: []Field{
		{Name: "nexthdr", Type: datatype.InetProto, Offset: 0, Bits: 8, Protocol: true},
		{Name: "flags", Type: datatype.Bitmask, Offset: 8, Bits: 8},
		{Name: "cpi", Type: datatype.Integer, Offset: 16, Bits: 16},
	},
}

// after AH and IPComp, in the same layer: nft 1.0.6 aborts above the link layer
var secured = []upper{
	{unix.IPPROTO_ESP, "esp"},
	{unix.IPPROTO_AH, "ah"},
	{unix.IPPROTO_COMP, "comp"},
	{unix.IPPROTO_UDP, "udp"},
	{unix.IPPROTO_UDPLITE, "udplite"},
	{unix.IPPROTO_TCP, "tcp"},
	{unix.IPPROTO_DCCP, "dccp"},
	{unix.IPPROTO_SCTP, "sctp"},
}

// HeaderIGMP has no dependencies between its fields.
var HeaderIGMP = Header{
	Name: "igmp", Desc: 5, Layer: LayerTransport, Checksum: checksum{checksumInet, 2},
	Fields: []Field{
		{Name: "type", Type: datatype.IGMPType, Offset: 0, Bits: 8},
		{Name: "checksum", Type: datatype.Integer, Offset: 16, Bits: 16},
		{Name: "mrt", Type: datatype.Integer, Offset: 8, Bits: 8},
		{Name: "group", Type: datatype.Integer, Offset: 32, Bits: 32},
	},
}

// the fields id and sequence match both
const (
	ICMPEchoReply     = 0
	ICMPEchoRequest   = 8
	ICMPv6EchoRequest = 128
	ICMPv6EchoReply   = 129
)

// HeaderICMP is ICMP (linux/icmp.h). For pairs, nft checks the request before the reply.
var HeaderICMP = Header{
	Name: "icmp", Desc: 4, Layer: LayerTransport, Checksum: checksum{checksumInet, 2},
	Fields: []Field{
		{Name: "type", Type: datatype.ICMPType, Offset: 0, Bits: 8, Protocol: true},
		{Name: "code", Type: datatype.ICMPCode, Offset: 8, Bits: 8},
		{Name: "checksum", Type: datatype.Integer, Offset: 16, Bits: 16},
		{Name: "id", Type: datatype.Integer, Offset: 32, Bits: 16, ICMPTypes: []uint64{8, 0}},
		{Name: "sequence", Type: datatype.Integer, Offset: 48, Bits: 16, ICMPTypes: []uint64{8, 0}},
		{Name: "gateway", Type: datatype.Integer, Offset: 32, Bits: 32, ICMPTypes: []uint64{5}},
		{Name: "mtu", Type: datatype.Integer, Offset: 48, Bits: 16, ICMPTypes: []uint64{3}},
	},
}

// HeaderICMPv6 is like HeaderICMP (linux/icmpv6.h).
var HeaderICMPv6 = Header{
	Name: "icmpv6", Desc: 14, Layer: LayerTransport, Checksum: checksum{checksumInet, 2},
	Fields: []Field{
		{Name: "type", Type: datatype.ICMPv6Type, Offset: 0, Bits: 8, Protocol: true},
		{Name: "code", Type: datatype.ICMPv6Code, Offset: 8, Bits: 8},
		{Name: "checksum", Type: datatype.Integer, Offset: 16, Bits: 16},
		{Name: "param-problem", Type: datatype.Integer, Offset: 32, Bits: 32, ICMPTypes: []uint64{4}},
		{Name: "mtu", Type: datatype.Integer, Offset: 32, Bits: 32, ICMPTypes: []uint64{2}},
		{Name: "id", Type: datatype.Integer, Offset: 32, Bits: 16, ICMPTypes: []uint64{128, 129}},
		{Name: "sequence", Type: datatype.Integer, Offset: 48, Bits: 16, ICMPTypes: []uint64{128, 129}},
		{Name: "max-delay", Type: datatype.Integer, Offset: 32, Bits: 16, ICMPTypes: []uint64{130}},
	},
}
