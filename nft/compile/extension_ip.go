package compile

import "github.com/weft-proxy/weft/nft/datatype"

// Protocol numbers of the IPv6 extension headers (linux/in6.h).
const (
	protoHopByHop    = 0
	protoRouting     = 43
	protoFragment    = 44
	protoDestination = 60
	protoMobility    = 135
)

// nextHeader begins every extension header of IPv6.
var nextHeader = extensionField{name: "nexthdr", index: 1, typ: datatype.InetProto, offset: 0, bits: 8}

// headerLength follows the next header in most of them.
var headerLength = extensionField{name: "hdrlength", index: 2, typ: datatype.Integer, offset: 8, bits: 8}

// ipv6Extensions are the extension headers of IPv6. Routing headers of the
// types 0, 2 and 4 (segment routing) have names of their own for what follows
// the common part; of type 2 nft 1.0.6 knows no field.
var ipv6Extensions = [...]extension{
	{name: "hbh", typ: protoHopByHop, desc: 1, presence: nextHeader, fields: []extensionField{nextHeader, headerLength}},
	{name: "rt", typ: protoRouting, desc: 2, presence: nextHeader, fields: []extensionField{
		nextHeader, headerLength,
		{name: "type", index: 3, typ: datatype.Integer, offset: 16, bits: 8},
		{name: "seg-left", index: 4, typ: datatype.Integer, offset: 24, bits: 8},
	}},
	{name: "rt0", typ: protoRouting, desc: 3, fields: []extensionField{
		{name: "addr[1]", index: 2, typ: datatype.IPv6Addr, offset: 64, bits: 128},
		{name: "addr[2]", index: 3, typ: datatype.IPv6Addr, offset: 192, bits: 128},
	}},
	{name: "rt2", typ: protoRouting, desc: 4},
	{name: "srh", typ: protoRouting, desc: 5, fields: []extensionField{
		{name: "last-entry", index: 1, typ: datatype.Integer, offset: 32, bits: 8},
		{name: "flags", index: 2, typ: datatype.Integer, offset: 40, bits: 8},
		{name: "tag", index: 3, typ: datatype.Integer, offset: 48, bits: 16},
		{name: "sid[1]", index: 4, typ: datatype.IPv6Addr, offset: 64, bits: 128},
		{name: "sid[2]", index: 5, typ: datatype.IPv6Addr, offset: 192, bits: 128},
	}},
	{name: "frag", typ: protoFragment, desc: 6, presence: nextHeader, fields: []extensionField{
		nextHeader,
		{name: "reserved", index: 2, typ: datatype.Integer, offset: 8, bits: 8},
		{name: "frag-off", index: 3, typ: datatype.Integer, offset: 16, bits: 13},
		{name: "reserved2", index: 4, typ: datatype.Integer, offset: 29, bits: 2},
		{name: "more-fragments", index: 5, typ: datatype.Integer, offset: 31, bits: 1},
		{name: "id", index: 6, typ: datatype.Integer, offset: 32, bits: 32},
	}},
	{name: "dst", typ: protoDestination, desc: 7, presence: nextHeader, fields: []extensionField{nextHeader, headerLength}},
	{name: "mh", typ: protoMobility, desc: 8, presence: nextHeader, fields: []extensionField{
		nextHeader, headerLength,
		{name: "type", index: 3, typ: datatype.MHType, offset: 16, bits: 8},
		{name: "reserved", index: 4, typ: datatype.Integer, offset: 24, bits: 8},
		{name: "checksum", index: 5, typ: datatype.Integer, offset: 32, bits: 16},
	}},
}

// The fields of IPv4 options.
var (
	ipv4Type   = extensionField{name: "type", index: 1, typ: datatype.Integer, offset: 0, bits: 8}
	ipv4Length = extensionField{name: "length", index: 2, typ: datatype.Integer, offset: 8, bits: 8}
	ipv4Value  = extensionField{name: "value", index: 3, typ: datatype.Integer, offset: 16, bits: 16}
	ipv4Ptr    = extensionField{name: "ptr", index: 4, typ: datatype.Integer, offset: 16, bits: 8}
	ipv4Addr   = extensionField{name: "addr", index: 5, typ: datatype.Integer, offset: 24, bits: 32}
)

// ipv4Options are the options of IPv4 (linux/ip.h): loose and strict source
// routes, the record of a route, and the router alert.
var ipv4Options = [...]extension{
	{name: "lsrr", typ: 131, presence: ipv4Type, fields: []extensionField{ipv4Type, ipv4Length, ipv4Ptr, ipv4Addr}},
	{name: "rr", typ: 7, presence: ipv4Type, fields: []extensionField{ipv4Type, ipv4Length, ipv4Ptr, ipv4Addr}},
	{name: "ssrr", typ: 137, presence: ipv4Type, fields: []extensionField{ipv4Type, ipv4Length, ipv4Ptr, ipv4Addr}},
	{name: "ra", typ: 148, presence: ipv4Type, fields: []extensionField{ipv4Type, ipv4Length, ipv4Value}},
}
