package compile

import "github.com/weft-proxy/weft/nft/datatype"

// transports are the transport protocols. IPv4, IPv6 and a network layer that
// is not known carry the same ones: ICMP in IPv6 and ICMPv6 in IPv4 are
// possible when a rule matches the protocol number.
var transports = []upper{
	{protoTCP, "tcp"},
	{protoUDP, "udp"},
	{protoICMP, "icmp"},
	{protoICMPv6, "icmpv6"},
	{protoSCTP, "sctp"},
	{protoIGMP, "igmp"},
	{protoDCCP, "dccp"},
	{protoESP, "esp"},
	{protoAH, "ah"},
	{protoComp, "comp"},
	{protoUDPLite, "udplite"},
}

// headerService stands for a network layer that is not known.
var headerService = header{name: "inet-service", layer: layerNetwork, key: "l4proto", uppers: transports}

var headerIP = header{
	name: "ip", layer: layerNetwork, key: "l4proto", uppers: transports, checksum: checksum{checksumInet, 10},
	fields: []field{
		{name: "version", typ: datatype.Integer, offset: 0, bits: 4},
		{name: "hdrlength", typ: datatype.Integer, offset: 4, bits: 4},
		{name: "dscp", typ: datatype.DSCP, offset: 8, bits: 6},
		{name: "ecn", typ: datatype.ECN, offset: 14, bits: 2},
		{name: "length", typ: datatype.Integer, offset: 16, bits: 16, pseudo: true},
		{name: "id", typ: datatype.Integer, offset: 32, bits: 16},
		{name: "frag-off", typ: datatype.Integer, offset: 48, bits: 16},
		{name: "ttl", typ: datatype.Integer, offset: 64, bits: 8},
		{name: "protocol", typ: datatype.InetProto, offset: 72, bits: 8, protocol: true, pseudo: true},
		{name: "checksum", typ: datatype.Integer, offset: 80, bits: 16},
		{name: "saddr", typ: datatype.IPv4Addr, offset: 96, bits: 32, pseudo: true},
		{name: "daddr", typ: datatype.IPv4Addr, offset: 128, bits: 32, pseudo: true},
	},
}

var headerIP6 = header{
	name: "ip6", layer: layerNetwork, key: "l4proto", uppers: transports,
	fields: []field{
		{name: "version", typ: datatype.Integer, offset: 0, bits: 4},
		{name: "dscp", typ: datatype.DSCP, offset: 4, bits: 6},
		{name: "ecn", typ: datatype.ECN, offset: 10, bits: 2},
		{name: "flowlabel", typ: datatype.Integer, offset: 12, bits: 20},
		{name: "length", typ: datatype.Integer, offset: 32, bits: 16, pseudo: true},
		{name: "nexthdr", typ: datatype.InetProto, offset: 48, bits: 8, protocol: true, pseudo: true},
		{name: "hoplimit", typ: datatype.Integer, offset: 56, bits: 8},
		{name: "saddr", typ: datatype.IPv6Addr, offset: 64, bits: 128, pseudo: true},
		{name: "daddr", typ: datatype.IPv6Addr, offset: 192, bits: 128, pseudo: true},
	},
}

// headerARP is ARP of IPv4 over Ethernet.
var headerARP = header{
	name: "arp", layer: layerNetwork,
	fields: []field{
		{name: "htype", typ: datatype.Integer, offset: 0, bits: 16},
		{name: "ptype", typ: datatype.EtherType, offset: 16, bits: 16},
		{name: "hlen", typ: datatype.Integer, offset: 32, bits: 8},
		{name: "plen", typ: datatype.Integer, offset: 40, bits: 8},
		{name: "operation", typ: datatype.ARPOp, offset: 48, bits: 16},
		{name: "saddr ether", typ: datatype.EtherAddr, offset: 64, bits: 48},
		{name: "saddr ip", typ: datatype.IPv4Addr, offset: 112, bits: 32},
		{name: "daddr ether", typ: datatype.EtherAddr, offset: 144, bits: 48},
		{name: "daddr ip", typ: datatype.IPv4Addr, offset: 192, bits: 32},
	},
}
