package compile

import "github.com/weft-proxy/weft/nft/datatype"

// The protocol numbers of linux/in.h and linux/in6.h.
const (
	protoICMP    = 1
	protoIGMP    = 2
	protoTCP     = 6
	protoUDP     = 17
	protoDCCP    = 33
	protoESP     = 50
	protoAH      = 51
	protoICMPv6  = 58
	protoComp    = 108
	protoSCTP    = 132
	protoUDPLite = 136
)

var headerTCP = header{
	name: "tcp", layer: layerTransport, checksum: checksum{checksumInet, 16},
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
	name: "udp", layer: layerTransport, checksum: checksum{checksumInet, 6},
	fields: []field{
		{name: "sport", typ: datatype.InetService, offset: 0, bits: 16},
		{name: "dport", typ: datatype.InetService, offset: 16, bits: 16},
		{name: "length", typ: datatype.Integer, offset: 32, bits: 16},
		{name: "checksum", typ: datatype.Integer, offset: 48, bits: 16},
	},
}

// headerUDPLite has the same form as UDP; its second word says how much the
// checksum covers. The kernel does not correct that one.
var headerUDPLite = header{
	name: "udplite", layer: layerTransport,
	fields: []field{
		{name: "sport", typ: datatype.InetService, offset: 0, bits: 16},
		{name: "dport", typ: datatype.InetService, offset: 16, bits: 16},
		{name: "csumcov", typ: datatype.Integer, offset: 32, bits: 16},
		{name: "checksum", typ: datatype.Integer, offset: 48, bits: 16},
	},
}

var headerSCTP = header{
	name: "sctp", layer: layerTransport, checksum: checksum{checksumSCTP, 8},
	fields: []field{
		{name: "sport", typ: datatype.InetService, offset: 0, bits: 16},
		{name: "dport", typ: datatype.InetService, offset: 16, bits: 16},
		{name: "vtag", typ: datatype.Integer, offset: 32, bits: 32},
		{name: "checksum", typ: datatype.Integer, offset: 64, bits: 32},
	},
}

var headerDCCP = header{
	name: "dccp", layer: layerTransport,
	fields: []field{
		{name: "sport", typ: datatype.InetService, offset: 0, bits: 16},
		{name: "dport", typ: datatype.InetService, offset: 16, bits: 16},
		{name: "type", typ: datatype.DCCPPktType, offset: 67, bits: 4},
	},
}

// headerTH is what TCP, UDP, UDP-Lite, DCCP and SCTP have in common; it adds no dependency.
var headerTH = header{
	name: "th", layer: layerTransport, raw: true,
	fields: []field{
		{name: "sport", typ: datatype.InetService, offset: 0, bits: 16},
		{name: "dport", typ: datatype.InetService, offset: 16, bits: 16},
	},
}

var headerAH = header{
	name: "ah", layer: layerTransport, uppers: secured,
	fields: []field{
		{name: "nexthdr", typ: datatype.InetProto, offset: 0, bits: 8, protocol: true},
		{name: "hdrlength", typ: datatype.Integer, offset: 8, bits: 8},
		{name: "reserved", typ: datatype.Integer, offset: 16, bits: 16},
		{name: "spi", typ: datatype.Integer, offset: 32, bits: 32},
		{name: "sequence", typ: datatype.Integer, offset: 64, bits: 32},
	},
}

var headerESP = header{
	name: "esp", layer: layerTransport,
	fields: []field{
		{name: "spi", typ: datatype.Integer, offset: 0, bits: 32},
		{name: "sequence", typ: datatype.Integer, offset: 32, bits: 32},
	},
}

var headerComp = header{
	name: "comp", layer: layerTransport, uppers: secured,
	fields: []field{
		{name: "nexthdr", typ: datatype.InetProto, offset: 0, bits: 8, protocol: true},
		{name: "flags", typ: datatype.Bitmask, offset: 8, bits: 8},
		{name: "cpi", typ: datatype.Integer, offset: 16, bits: 16},
	},
}

// secured are the protocols behind AH and IPComp. They are of the same layer,
// which nft 1.0.6 cannot stack above the link layer: it aborts.
var secured = []upper{
	{protoESP, "esp"},
	{protoAH, "ah"},
	{protoComp, "comp"},
	{protoUDP, "udp"},
	{protoUDPLite, "udplite"},
	{protoTCP, "tcp"},
	{protoDCCP, "dccp"},
	{protoSCTP, "sctp"},
}

// headerIGMP has no dependencies between its fields.
var headerIGMP = header{
	name: "igmp", layer: layerTransport, checksum: checksum{checksumInet, 2},
	fields: []field{
		{name: "type", typ: datatype.IGMPType, offset: 0, bits: 8},
		{name: "mrt", typ: datatype.Integer, offset: 8, bits: 8},
		{name: "checksum", typ: datatype.Integer, offset: 16, bits: 16},
		{name: "group", typ: datatype.Integer, offset: 32, bits: 32},
	},
}

// The ICMP messages that nft takes for the same when it matches fields.
const (
	icmpEchoReply     = 0
	icmpEchoRequest   = 8
	icmpv6EchoRequest = 128
	icmpv6EchoReply   = 129
)

// ICMP message types that decide which fields a message has (linux/icmp.h,
// linux/icmpv6.h). For messages that come in pairs nft checks the request
// before the reply.
var headerICMP = header{
	name: "icmp", layer: layerTransport, checksum: checksum{checksumInet, 2},
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
	name: "icmpv6", layer: layerTransport, checksum: checksum{checksumInet, 2},
	fields: []field{
		{name: "type", typ: datatype.ICMPv6Type, offset: 0, bits: 8, protocol: true},
		{name: "code", typ: datatype.ICMPv6Code, offset: 8, bits: 8},
		{name: "checksum", typ: datatype.Integer, offset: 16, bits: 16},
		{name: "param-problem", typ: datatype.Integer, offset: 32, bits: 32, icmpTypes: []uint64{4}},
		{name: "mtu", typ: datatype.Integer, offset: 32, bits: 32, icmpTypes: []uint64{2}},
		{name: "id", typ: datatype.Integer, offset: 32, bits: 16, icmpTypes: []uint64{128, 129}},
		{name: "sequence", typ: datatype.Integer, offset: 48, bits: 16, icmpTypes: []uint64{128, 129}},
		{name: "max-delay", typ: datatype.Integer, offset: 32, bits: 16, icmpTypes: []uint64{130}},
	},
}
