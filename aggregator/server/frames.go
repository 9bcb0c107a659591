package server

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// frameHeaderLen is the length of a frame's header in bytes (RFC 9113, section 4.1).
const frameHeaderLen = 9

// frames finds the frames in one direction of an HTTP/2 connection. It keeps no payload. Data other
// than HTTP/2 gives meaningless frames and no error; the transport closes such a connection.
type frames struct {
	// bytes missing from the client's preface
	preface int
	header  [frameHeaderLen]byte
	// bytes of the header that have arrived
	have int
	// the current frame, and the bytes missing from its payload
	frame http2.FrameHeader
	left  int
}

// feed takes the next bytes. It calls begin for every header and payload for every piece of a
// payload.
func (f *frames) feed(b []byte, begin func(http2.FrameHeader), payload func(http2.FrameHeader, []byte)) {
	n := min(f.preface, len(b))
	f.preface -= n
	b = b[n:]
	for len(b) > 0 {
		if f.left > 0 {
			n := min(f.left, len(b))
			payload(f.frame, b[:n])
			f.left -= n
			b = b[n:]
			continue
		}
		n := copy(f.header[f.have:], b)
		f.have += n
		b = b[n:]
		if f.have < frameHeaderLen {
			return
		}
		f.have = 0
		first := binary.BigEndian.Uint32(f.header[:])
		f.frame = http2.FrameHeader{
			Type:     http2.FrameType(first & 0xff),
			Flags:    http2.Flags(f.header[4]),
			Length:   first >> 8,
			StreamID: binary.BigEndian.Uint32(f.header[5:]) &^ (1 << 31),
		}
		f.left = int(f.frame.Length)
		begin(f.frame)
	}
}

// between reports whether all begun frames are complete.
func (f *frames) between() bool { return f.left == 0 && f.have == 0 }
