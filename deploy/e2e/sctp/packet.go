package sctp

import (
	"encoding/binary"
	"hash/crc32"
)

const protocol = "132"

type kind byte

const (
	data             kind = 0
	initiate         kind = 1
	initiateAck      kind = 2
	selectiveAck     kind = 3
	abort            kind = 6
	shutdown         kind = 7
	shutdownAck      kind = 8
	cookieEcho       kind = 10
	cookieAck        kind = 11
	shutdownComplete kind = 14
)

const (
	headerSize      = 12
	chunkHeaderSize = 4
	// Sizes of the fixed parts of INIT and DATA, after the chunk header.
	initSize, dataSize = 16, 12
	whole              = 3
	// The client sends this parameter of INIT ACK back.
	cookieParameter = 7
	window          = 1 << 16
)

type chunk struct {
	kind  kind
	flags byte
	body  []byte
}

// packet has no checksum.
type packet struct {
	from, to uint16
	tag      uint32
	chunks   []chunk
}

func (p packet) encode() []byte {
	b := make([]byte, headerSize)
	binary.BigEndian.PutUint16(b[0:], p.from)
	binary.BigEndian.PutUint16(b[2:], p.to)
	binary.BigEndian.PutUint32(b[4:], p.tag)
	for _, c := range p.chunks {
		b = append(b, byte(c.kind), c.flags)
		b = binary.BigEndian.AppendUint16(b, uint16(chunkHeaderSize+len(c.body)))
		b = append(b, c.body...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	binary.LittleEndian.PutUint32(b[8:], checksum(b))
	return b
}

func decode(b []byte) (packet, bool) {
	if len(b) < headerSize {
		return packet{}, false
	}
	sum := binary.LittleEndian.Uint32(b[8:])
	b = append([]byte(nil), b...)
	binary.LittleEndian.PutUint32(b[8:], 0)
	if sum != checksum(b) {
		return packet{}, false
	}
	p := packet{from: binary.BigEndian.Uint16(b[0:]), to: binary.BigEndian.Uint16(b[2:]), tag: binary.BigEndian.Uint32(b[4:])}
	for b = b[headerSize:]; len(b) >= chunkHeaderSize; {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < chunkHeaderSize || n > len(b) {
			return packet{}, false
		}
		p.chunks = append(p.chunks, chunk{kind: kind(b[0]), flags: b[1], body: b[chunkHeaderSize:n]})
		b = b[min(len(b), (n+3)/4*4):]
	}
	return p, true
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func initBody(tag, sequence uint32, cookie []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, tag)
	b = binary.BigEndian.AppendUint32(b, window)
	b = binary.BigEndian.AppendUint16(b, 1)
	b = binary.BigEndian.AppendUint16(b, 1)
	b = binary.BigEndian.AppendUint32(b, sequence)
	if cookie != nil {
		b = binary.BigEndian.AppendUint16(b, cookieParameter)
		b = binary.BigEndian.AppendUint16(b, uint16(4+len(cookie)))
		b = append(b, cookie...)
	}
	return b
}

func parseInit(b []byte) (tag, sequence uint32, cookie []byte, ok bool) {
	if len(b) < initSize {
		return 0, 0, nil, false
	}
	tag, sequence = binary.BigEndian.Uint32(b[0:]), binary.BigEndian.Uint32(b[12:])
	for b = b[initSize:]; len(b) >= 4; {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < 4 || n > len(b) {
			break
		}
		if binary.BigEndian.Uint16(b) == cookieParameter {
			cookie = b[4:n]
		}
		b = b[min(len(b), (n+3)/4*4):]
	}
	return tag, sequence, cookie, tag != 0
}

func dataBody(sequence uint32, stream uint16, message []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, sequence)
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint16(b, stream)
	b = binary.BigEndian.AppendUint32(b, 0)
	return append(b, message...)
}

func ackBody(sequence uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, sequence)
	b = binary.BigEndian.AppendUint32(b, window)
	return binary.BigEndian.AppendUint32(b, 0)
}
