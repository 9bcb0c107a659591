package selector

import "github.com/weft-proxy/weft/nft/datatype"

// TCPKind is the first byte of every option, without a name in nft 1.0.6.
var TCPKind = ExtensionField{Index: 0, Type: datatype.Integer, offset: 0, Bits: 8}

// missing in the two options of a single byte
var tcpLength = ExtensionField{Name: "length", Index: 1, Type: datatype.Integer, offset: 8, Bits: 8}

// net/tcp.h, with aliases. The first entry of a kind has all fields, for raw options.
var tcpOptions = [...]extension{
	{Name: "eol", Type: 0, Presence: TCPKind},
	{Name: "nop", Type: 1, Presence: TCPKind},
	{Name: "noop", Type: 1, Presence: TCPKind},
	{Name: "maxseg", Type: 2, Presence: TCPKind, Fields: []ExtensionField{tcpLength, maxSegSize}},
	{Name: "mss", Type: 2, Presence: TCPKind, Fields: []ExtensionField{tcpLength, maxSegSize}},
	{Name: "window", Type: 3, Presence: TCPKind, Fields: []ExtensionField{
		tcpLength,
		{Name: "count", Index: 2, Type: datatype.Integer, offset: 16, Bits: 8},
	}},
	{Name: "sack-perm", Type: 4, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
	{Name: "sack-permitted", Type: 4, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
	{Name: "sack", Type: 5, Presence: TCPKind, Fields: sackBlock(0)},
	{Name: "sack0", Type: 5, Presence: TCPKind, Fields: sackBlock(0)},
	{Name: "sack1", Type: 5, Presence: TCPKind, Fields: sackBlock(1)},
	{Name: "sack2", Type: 5, Presence: TCPKind, Fields: sackBlock(2)},
	{Name: "sack3", Type: 5, Presence: TCPKind, Fields: sackBlock(3)},
	{Name: "timestamp", Type: 8, Presence: TCPKind, Fields: []ExtensionField{
		tcpLength,
		{Name: "tsval", Index: 2, Type: datatype.Integer, offset: 16, Bits: 32},
		{Name: "tsecr", Index: 3, Type: datatype.Integer, offset: 48, Bits: 32},
	}},
	{Name: "echo", Type: 8, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
	{Name: "md5sig", Type: 19, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
	{Name: "mptcp", Type: 30, Presence: TCPKind, Fields: []ExtensionField{
		tcpLength,
		{Name: "subtype", Index: 2, Type: datatype.Integer, offset: 16, Bits: 4},
	}},
	{Name: "fastopen", Type: 34, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
}

var maxSegSize = ExtensionField{Name: "size", Index: 2, Type: datatype.Integer, offset: 16, Bits: 16}

func sackBlock(n uint32) []ExtensionField {
	return []ExtensionField{
		tcpLength,
		{Name: "left", Index: 2 + 2*n, Type: datatype.Integer, offset: 16 + 64*n, Bits: 32},
		{Name: "right", Index: 3 + 2*n, Type: datatype.Integer, offset: 48 + 64*n, Bits: 32},
	}
}
