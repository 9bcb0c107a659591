package cyclonus

import (
	"encoding/binary"
	"hash/crc32"
)

// This kernel has no SCTP sockets, but tracks SCTP: raw sockets send and answer the INIT of an
// association.

const (
	sctpInit    = 1
	sctpInitAck = 2
	// sctpSize counts the header, the chunk's header, the fixed part of INIT, and a parameter with a
	// nonce.
	sctpSize = 12 + 4 + 16 + 4 + 8
)

// sctpPacket is an INIT or INIT ACK with a nonce in a parameter that receivers skip.
func sctpPacket(from, to uint16, tag uint32, chunk byte, nonce uint64) []byte {
	b := make([]byte, sctpSize)
	binary.BigEndian.PutUint16(b[0:], from)
	binary.BigEndian.PutUint16(b[2:], to)
	binary.BigEndian.PutUint32(b[4:], tag)
	b[12] = chunk
	binary.BigEndian.PutUint16(b[14:], sctpSize-12)
	binary.BigEndian.PutUint32(b[16:], 1) // the sender's own tag
	binary.BigEndian.PutUint32(b[20:], 65536)
	binary.BigEndian.PutUint16(b[24:], 1)
	binary.BigEndian.PutUint16(b[26:], 1)
	binary.BigEndian.PutUint16(b[32:], 0x8001)
	binary.BigEndian.PutUint16(b[34:], 4+8)
	binary.BigEndian.PutUint64(b[36:], nonce)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// parseSCTP returns the arguments of sctpPacket.
func parseSCTP(b []byte) (from, to uint16, chunk byte, nonce uint64, ok bool) {
	if len(b) != sctpSize {
		return 0, 0, 0, 0, false
	}
	return binary.BigEndian.Uint16(b[0:]), binary.BigEndian.Uint16(b[2:]), b[12], binary.BigEndian.Uint64(b[36:]), true
}
