package selector

import "github.com/weft-proxy/weft/nft/datatype"

// Kinds of TCP options (net/tcp.h).
const (
	tcpoptEOL       = 0
	tcpoptNOP       = 1
	tcpoptMaxSeg    = 2
	tcpoptWindow    = 3
	tcpoptSackPerm  = 4
	tcpoptSack      = 5
	tcpoptTimestamp = 8
	tcpoptMD5       = 19
	tcpoptMPTCP     = 30
	tcpoptFastOpen  = 34
)

// TCPKind is the kind byte, the first field of every TCP option. nft 1.0.6 has no name for
// it.
var TCPKind = ExtensionField{Index: 0, Type: datatype.Integer, offset: 0, Bits: 8}

// tcpLength follows it, but in the two options of a single byte.
var tcpLength = ExtensionField{Name: "length", Index: 1, Type: datatype.Integer, offset: 8, Bits: 8}

// tcpOptions are the options of TCP, with the other names that nft 1.0.6 takes.
// The first of a kind has all of its fields, so that raw options find them.
var tcpOptions = [...]extension{
	{Name: "eol", Type: tcpoptEOL, Presence: TCPKind},
	{Name: "nop", Type: tcpoptNOP, Presence: TCPKind},
	{Name: "noop", Type: tcpoptNOP, Presence: TCPKind},
	{Name: "maxseg", Type: tcpoptMaxSeg, Presence: TCPKind, Fields: []ExtensionField{tcpLength, maxSegSize}},
	{Name: "mss", Type: tcpoptMaxSeg, Presence: TCPKind, Fields: []ExtensionField{tcpLength, maxSegSize}},
	{Name: "window", Type: tcpoptWindow, Presence: TCPKind, Fields: []ExtensionField{
		tcpLength,
		{Name: "count", Index: 2, Type: datatype.Integer, offset: 16, Bits: 8},
	}},
	{Name: "sack-perm", Type: tcpoptSackPerm, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
	{Name: "sack-permitted", Type: tcpoptSackPerm, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
	{Name: "sack", Type: tcpoptSack, Presence: TCPKind, Fields: sackBlock(0)},
	{Name: "sack0", Type: tcpoptSack, Presence: TCPKind, Fields: sackBlock(0)},
	{Name: "sack1", Type: tcpoptSack, Presence: TCPKind, Fields: sackBlock(1)},
	{Name: "sack2", Type: tcpoptSack, Presence: TCPKind, Fields: sackBlock(2)},
	{Name: "sack3", Type: tcpoptSack, Presence: TCPKind, Fields: sackBlock(3)},
	{Name: "timestamp", Type: tcpoptTimestamp, Presence: TCPKind, Fields: []ExtensionField{
		tcpLength,
		{Name: "tsval", Index: 2, Type: datatype.Integer, offset: 16, Bits: 32},
		{Name: "tsecr", Index: 3, Type: datatype.Integer, offset: 48, Bits: 32},
	}},
	{Name: "echo", Type: tcpoptTimestamp, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
	{Name: "md5sig", Type: tcpoptMD5, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
	{Name: "mptcp", Type: tcpoptMPTCP, Presence: TCPKind, Fields: []ExtensionField{
		tcpLength,
		{Name: "subtype", Index: 2, Type: datatype.Integer, offset: 16, Bits: 4},
	}},
	{Name: "fastopen", Type: tcpoptFastOpen, Presence: TCPKind, Fields: []ExtensionField{tcpLength}},
}

// maxSegSize is the maximum segment size.
var maxSegSize = ExtensionField{Name: "size", Index: 2, Type: datatype.Integer, offset: 16, Bits: 16}

// sackBlock returns the fields of a block of selective acknowledgements.
func sackBlock(n uint32) []ExtensionField {
	return []ExtensionField{
		tcpLength,
		{Name: "left", Index: 2 + 2*n, Type: datatype.Integer, offset: 16 + 64*n, Bits: 32},
		{Name: "right", Index: 3 + 2*n, Type: datatype.Integer, offset: 48 + 64*n, Bits: 32},
	}
}
