package compile

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

// tcpKind begins every TCP option; nft 1.0.6 has no word for it.
var tcpKind = extensionField{index: 0, typ: datatype.Integer, offset: 0, bits: 8}

// tcpLength follows it, but in the two options of a single byte.
var tcpLength = extensionField{name: "length", index: 1, typ: datatype.Integer, offset: 8, bits: 8}

// tcpOptions are the options of TCP, with the other names that nft 1.0.6 takes.
// The first of a kind has all of its fields, so that raw options find them.
var tcpOptions = [...]extension{
	{name: "eol", typ: tcpoptEOL, presence: tcpKind},
	{name: "nop", typ: tcpoptNOP, presence: tcpKind},
	{name: "noop", typ: tcpoptNOP, presence: tcpKind},
	{name: "maxseg", typ: tcpoptMaxSeg, presence: tcpKind, fields: []extensionField{tcpLength, maxSegSize}},
	{name: "mss", typ: tcpoptMaxSeg, presence: tcpKind, fields: []extensionField{tcpLength, maxSegSize}},
	{name: "window", typ: tcpoptWindow, presence: tcpKind, fields: []extensionField{
		tcpLength,
		{name: "count", index: 2, typ: datatype.Integer, offset: 16, bits: 8},
	}},
	{name: "sack-perm", typ: tcpoptSackPerm, presence: tcpKind, fields: []extensionField{tcpLength}},
	{name: "sack-permitted", typ: tcpoptSackPerm, presence: tcpKind, fields: []extensionField{tcpLength}},
	{name: "sack", typ: tcpoptSack, presence: tcpKind, fields: sackBlock(0)},
	{name: "sack0", typ: tcpoptSack, presence: tcpKind, fields: sackBlock(0)},
	{name: "sack1", typ: tcpoptSack, presence: tcpKind, fields: sackBlock(1)},
	{name: "sack2", typ: tcpoptSack, presence: tcpKind, fields: sackBlock(2)},
	{name: "sack3", typ: tcpoptSack, presence: tcpKind, fields: sackBlock(3)},
	{name: "timestamp", typ: tcpoptTimestamp, presence: tcpKind, fields: []extensionField{
		tcpLength,
		{name: "tsval", index: 2, typ: datatype.Integer, offset: 16, bits: 32},
		{name: "tsecr", index: 3, typ: datatype.Integer, offset: 48, bits: 32},
	}},
	{name: "echo", typ: tcpoptTimestamp, presence: tcpKind, fields: []extensionField{tcpLength}},
	{name: "md5sig", typ: tcpoptMD5, presence: tcpKind, fields: []extensionField{tcpLength}},
	{name: "mptcp", typ: tcpoptMPTCP, presence: tcpKind, fields: []extensionField{
		tcpLength,
		{name: "subtype", index: 2, typ: datatype.Integer, offset: 16, bits: 4},
	}},
	{name: "fastopen", typ: tcpoptFastOpen, presence: tcpKind, fields: []extensionField{tcpLength}},
}

// maxSegSize is the maximum segment size.
var maxSegSize = extensionField{name: "size", index: 2, typ: datatype.Integer, offset: 16, bits: 16}

// sackBlock returns the fields of a block of selective acknowledgements.
func sackBlock(n uint32) []extensionField {
	return []extensionField{
		tcpLength,
		{name: "left", index: 2 + 2*n, typ: datatype.Integer, offset: 16 + 64*n, bits: 32},
		{name: "right", index: 3 + 2*n, typ: datatype.Integer, offset: 48 + 64*n, bits: 32},
	}
}
