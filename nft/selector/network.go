package selector

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

// ICMP in IPv6 and ICMPv6 in IPv4 are possible if a rule matches the protocol number.
var transports = []upper{
	{unix.IPPROTO_TCP, "tcp"},
	{unix.IPPROTO_UDP, "udp"},
	{unix.IPPROTO_ICMP, "icmp"},
	{unix.IPPROTO_ICMPV6, "icmpv6"},
	{unix.IPPROTO_SCTP, "sctp"},
	{unix.IPPROTO_IGMP, "igmp"},
	{unix.IPPROTO_DCCP, "dccp"},
	{unix.IPPROTO_ESP, "esp"},
	{unix.IPPROTO_AH, "ah"},
	{unix.IPPROTO_COMP, "comp"},
	{unix.IPPROTO_UDPLITE, "udplite"},
}

// HeaderService is an unknown network layer.
var HeaderService = Header{Name: "inet-service", Layer: LayerNetwork, Key: "l4proto", Uppers: transports}

var HeaderIP = Header{
	Name: "ip", Desc: 12, Layer: LayerNetwork, Key: "l4proto", Uppers: transports, Checksum: checksum{checksumInet, 10},
	Fields: []Field{
		{Name: "version", Type: datatype.Integer, Offset: 0, Bits: 4},
		{Name: "hdrlength", Type: datatype.Integer, Offset: 4, Bits: 4},
		{Name: "dscp", Type: datatype.DSCP, Offset: 8, Bits: 6},
		{Name: "ecn", Type: datatype.ECN, Offset: 14, Bits: 2},
		{Name: "length", Type: datatype.Integer, Offset: 16, Bits: 16, Pseudo: true},
		{Name: "id", Type: datatype.Integer, Offset: 32, Bits: 16},
		{Name: "frag-off", Type: datatype.Integer, Offset: 48, Bits: 16},
		{Name: "ttl", Type: datatype.Integer, Offset: 64, Bits: 8},
		{Name: "protocol", Type: datatype.InetProto, Offset: 72, Bits: 8, Protocol: true, Pseudo: true},
		{Name: "checksum", Type: datatype.Integer, Offset: 80, Bits: 16},
		{Name: "saddr", Type: datatype.IPv4Addr, Offset: 96, Bits: 32, Pseudo: true},
		{Name: "daddr", Type: datatype.IPv4Addr, Offset: 128, Bits: 32, Pseudo: true},
	},
}

var HeaderIP6 = Header{
	Name: "ip6", Desc: 13, Layer: LayerNetwork, Key: "l4proto", Uppers: transports,
	Fields: []Field{
		{Name: "version", Type: datatype.Integer, Offset: 0, Bits: 4},
		{Name: "dscp", Type: datatype.DSCP, Offset: 4, Bits: 6},
		{Name: "ecn", Type: datatype.ECN, Offset: 10, Bits: 2},
		{Name: "flowlabel", Type: datatype.Integer, Offset: 12, Bits: 20},
		{Name: "length", Type: datatype.Integer, Offset: 32, Bits: 16, Pseudo: true},
		{Name: "nexthdr", Type: datatype.InetProto, Offset: 48, Bits: 8, Protocol: true, Pseudo: true},
		{Name: "hoplimit", Type: datatype.Integer, Offset: 56, Bits: 8},
		{Name: "saddr", Type: datatype.IPv6Addr, Offset: 64, Bits: 128, Pseudo: true},
		{Name: "daddr", Type: datatype.IPv6Addr, Offset: 192, Bits: 128, Pseudo: true},
	},
}

// HeaderARP is ARP of IPv4 over Ethernet.
var HeaderARP = Header{
	Name: "arp", Desc: 15, Layer: LayerNetwork,
	Fields: []Field{
		{Name: "htype", Type: datatype.Integer, Offset: 0, Bits: 16},
		{Name: "ptype", Type: datatype.EtherType, Offset: 16, Bits: 16},
		{Name: "hlen", Type: datatype.Integer, Offset: 32, Bits: 8},
		{Name: "plen", Type: datatype.Integer, Offset: 40, Bits: 8},
		{Name: "operation", Type: datatype.ARPOp, Offset: 48, Bits: 16},
		{Name: "saddr ether", Type: datatype.EtherAddr, Offset: 64, Bits: 48},
		{Name: "saddr ip", Type: datatype.IPv4Addr, Offset: 112, Bits: 32},
		{Name: "daddr ether", Type: datatype.EtherAddr, Offset: 144, Bits: 48},
		{Name: "daddr ip", Type: datatype.IPv4Addr, Offset: 192, Bits: 32},
	},
}
