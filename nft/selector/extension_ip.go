package selector

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

// begins every IPv6 extension header
var nextHeader = ExtensionField{Name: "nexthdr", Index: 1, Type: datatype.InetProto, offset: 0, Bits: 8}

// in most extension headers
var headerLength = ExtensionField{Name: "hdrlength", Index: 2, Type: datatype.Integer, offset: 8, Bits: 8}

// nft 1.0.6 has no fields for routing headers of type 2.
var ipv6Extensions = [...]extension{
	{Name: "hbh", Type: unix.IPPROTO_HOPOPTS, Desc: 1, Presence: nextHeader, Fields: []ExtensionField{nextHeader, headerLength}},
	{Name: "rt", Type: unix.IPPROTO_ROUTING, Desc: 2, Presence: nextHeader, Fields: []ExtensionField{
		nextHeader, headerLength,
		{Name: "type", Index: 3, Type: datatype.Integer, offset: 16, Bits: 8},
		{Name: "seg-left", Index: 4, Type: datatype.Integer, offset: 24, Bits: 8},
	}},
	{Name: "rt0", Type: unix.IPPROTO_ROUTING, Desc: 3, Fields: []ExtensionField{
		{Name: "addr[1]", Index: 2, Type: datatype.IPv6Addr, offset: 64, Bits: 128},
		{Name: "addr[2]", Index: 3, Type: datatype.IPv6Addr, offset: 192, Bits: 128},
	}},
	{Name: "rt2", Type: unix.IPPROTO_ROUTING, Desc: 4},
	{Name: "srh", Type: unix.IPPROTO_ROUTING, Desc: 5, Fields: []ExtensionField{
		{Name: "last-entry", Index: 1, Type: datatype.Integer, offset: 32, Bits: 8},
		{Name: "flags", Index: 2, Type: datatype.Integer, offset: 40, Bits: 8},
		{Name: "tag", Index: 3, Type: datatype.Integer, offset: 48, Bits: 16},
		{Name: "sid[1]", Index: 4, Type: datatype.IPv6Addr, offset: 64, Bits: 128},
		{Name: "sid[2]", Index: 5, Type: datatype.IPv6Addr, offset: 192, Bits: 128},
	}},
	{Name: "frag", Type: unix.IPPROTO_FRAGMENT, Desc: 6, Presence: nextHeader, Fields: []ExtensionField{
		nextHeader,
		{Name: "reserved", Index: 2, Type: datatype.Integer, offset: 8, Bits: 8},
		{Name: "frag-off", Index: 3, Type: datatype.Integer, offset: 16, Bits: 13},
		{Name: "reserved2", Index: 4, Type: datatype.Integer, offset: 29, Bits: 2},
		{Name: "more-fragments", Index: 5, Type: datatype.Integer, offset: 31, Bits: 1},
		{Name: "id", Index: 6, Type: datatype.Integer, offset: 32, Bits: 32},
	}},
	{Name: "dst", Type: unix.IPPROTO_DSTOPTS, Desc: 7, Presence: nextHeader, Fields: []ExtensionField{nextHeader, headerLength}},
	{Name: "mh", Type: unix.IPPROTO_MH, Desc: 8, Presence: nextHeader, Fields: []ExtensionField{
		nextHeader, headerLength,
		{Name: "type", Index: 3, Type: datatype.MHType, offset: 16, Bits: 8},
		{Name: "reserved", Index: 4, Type: datatype.Integer, offset: 24, Bits: 8},
		{Name: "checksum", Index: 5, Type: datatype.Integer, offset: 32, Bits: 16},
	}},
}

var (
	ipv4Type   = ExtensionField{Name: "type", Index: 1, Type: datatype.Integer, offset: 0, Bits: 8}
	ipv4Length = ExtensionField{Name: "length", Index: 2, Type: datatype.Integer, offset: 8, Bits: 8}
	ipv4Value  = ExtensionField{Name: "value", Index: 3, Type: datatype.Integer, offset: 16, Bits: 16}
	ipv4Ptr    = ExtensionField{Name: "ptr", Index: 4, Type: datatype.Integer, offset: 16, Bits: 8}
	ipv4Addr   = ExtensionField{Name: "addr", Index: 5, Type: datatype.Integer, offset: 24, Bits: 32}
)

// linux/ip.h
var ipv4Options = [...]extension{
	{Name: "lsrr", Type: 131, Presence: ipv4Type, Fields: []ExtensionField{ipv4Type, ipv4Length, ipv4Ptr, ipv4Addr}},
	{Name: "rr", Type: 7, Presence: ipv4Type, Fields: []ExtensionField{ipv4Type, ipv4Length, ipv4Ptr, ipv4Addr}},
	{Name: "ssrr", Type: 137, Presence: ipv4Type, Fields: []ExtensionField{ipv4Type, ipv4Length, ipv4Ptr, ipv4Addr}},
	{Name: "ra", Type: 148, Presence: ipv4Type, Fields: []ExtensionField{ipv4Type, ipv4Length, ipv4Value}},
}
