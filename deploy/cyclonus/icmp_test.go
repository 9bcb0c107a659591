package cyclonus

import (
	"encoding/binary"
	"errors"
	"net"
)

var (
	echoRequest = [2]byte{8, 128}
	echoReply   = [2]byte{0, 129}
)

const echoSize = 8 + 8

// The kernel writes the checksum of IPv6.
func echo(family int, identifier uint16, nonce uint64) []byte {
	b := make([]byte, echoSize)
	b[0] = echoRequest[family]
	binary.BigEndian.PutUint16(b[4:], identifier)
	binary.BigEndian.PutUint64(b[8:], nonce)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return b
}

// serveICMP reports requests, which the kernel answers, and answers.
func (a *agent) serveICMP(family int, conn *net.IPConn) {
	b := make([]byte, 256)
	for {
		n, err := conn.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// The packet includes its IPv4 header.
		packet := b[:max(n, 0)]
		if family == 0 && len(packet) > 0 {
			packet = packet[min(len(packet), int(packet[0]&0xf)*4):]
		}
		if err != nil || len(packet) != echoSize {
			continue
		}
		nonce := binary.BigEndian.Uint64(packet[8:])
		switch packet[0] {
		case echoRequest[family]:
			a.watch.arrived(nonce)
		case echoReply[family]:
			a.watch.answered(nonce)
		}
	}
}
