package selector

import "github.com/weft-proxy/weft/nft/datatype"

var (
	chunkType   = ExtensionField{Name: "type", Index: 0, Type: datatype.Integer, offset: 0, Bits: 8}
	chunkFlags  = ExtensionField{Name: "flags", Index: 1, Type: datatype.Integer, offset: 8, Bits: 8}
	chunkLength = ExtensionField{Name: "length", Index: 2, Type: datatype.Integer, offset: 16, Bits: 16}
)

type chunkField struct {
	name string
	bits uint32
}

// of INIT and its answer
var initFields = []chunkField{
	{"init-tag", 32}, {"a-rwnd", 32}, {"num-outbound-streams", 16}, {"num-inbound-streams", 16}, {"initial-tsn", 32},
}

// linux/sctp.h
var sctpChunks = [...]extension{
	chunk("data", 0, chunkField{"tsn", 32}, chunkField{"stream", 16}, chunkField{"ssn", 16}, chunkField{"ppid", 32}),
	chunk("init", 1, initFields...),
	chunk("init-ack", 2, initFields...),
	chunk("sack", 3, chunkField{"cum-tsn-ack", 32}, chunkField{"a-rwnd", 32}, chunkField{"num-gap-ack-blocks", 16}, chunkField{"num-dup-tsns", 16}),
	chunk("heartbeat", 4),
	chunk("heartbeat-ack", 5),
	chunk("abort", 6),
	chunk("shutdown", 7, chunkField{"cum-tsn-ack", 32}),
	chunk("shutdown-ack", 8),
	chunk("error", 9),
	chunk("cookie-echo", 10),
	chunk("cookie-ack", 11),
	chunk("ecne", 12, chunkField{"lowest-tsn", 32}),
	chunk("cwr", 13, chunkField{"lowest-tsn", 32}),
	chunk("shutdown-complete", 14),
	chunk("asconf-ack", 128, chunkField{"seqno", 32}),
	chunk("forward-tsn", 192, chunkField{"new-cum-tsn", 32}),
	chunk("asconf", 193, chunkField{"seqno", 32}),
}

func chunk(name string, typ uint8, own ...chunkField) extension {
	e := extension{Name: name, Type: typ, Presence: chunkType, Fields: []ExtensionField{chunkType, chunkFlags, chunkLength}}
	offset := chunkLength.offset + chunkLength.Bits
	for i, f := range own {
		e.Fields = append(e.Fields, ExtensionField{f.name, chunkLength.Index + 1 + uint32(i), datatype.Integer, offset, f.bits})
		offset += f.bits
	}
	return e
}
