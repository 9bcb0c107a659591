package differential

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// This kernel has no SCTP sockets, but translates SCTP: raw sockets send and answer the INIT of an
// association.

const (
	sctpInit    = 1
	sctpInitAck = 2
	// sctpHead is the header, the chunk's header and the fixed part of INIT.
	sctpHead = 12 + 4 + 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sctpPacket is an INIT or INIT ACK, followed by a text in place of a parameter.
func sctpPacket(from, to uint16, tag uint32, chunk byte, text string) []byte {
	length := 4 + len(text)
	b := make([]byte, sctpHead+(length+3)/4*4)
	binary.BigEndian.PutUint16(b[0:], from)
	binary.BigEndian.PutUint16(b[2:], to)
	binary.BigEndian.PutUint32(b[4:], tag)
	b[12] = chunk
	binary.BigEndian.PutUint16(b[14:], uint16(len(b)-12))
	binary.BigEndian.PutUint32(b[16:], 1) // the sender's own tag
	binary.BigEndian.PutUint32(b[20:], 65536)
	binary.BigEndian.PutUint16(b[24:], 1)
	binary.BigEndian.PutUint16(b[26:], 1)
	// A parameter of a type that a receiver skips.
	binary.BigEndian.PutUint16(b[32:], 0x8001)
	binary.BigEndian.PutUint16(b[34:], uint16(length))
	copy(b[36:], text)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, castagnoli))
	return b
}

func sctpText(b []byte) string {
	n := int(binary.BigEndian.Uint16(b[34:]))
	if n < 4 || 32+n > len(b) {
		return ""
	}
	return string(b[36 : 32+n])
}

// serveSCTP answers every INIT to a web port with an INIT ACK that has the pod and the client.
func serveSCTP(p *lab.Pod) error {
	for _, network := range []string{"ip4:132", "ip6:132"} {
		err := p.Do(func() error {
			conn, err := net.ListenPacket(network, "")
			if err != nil {
				return fmt.Errorf("serve SCTP in %s: %w", p.Name(), err)
			}
			go answerSCTP(conn, p.Name())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func answerSCTP(conn net.PacketConn, name string) {
	b := make([]byte, 2048)
	for {
		n, client, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		if n < sctpHead+4 || b[12] != sctpInit {
			continue
		}
		from, to := binary.BigEndian.Uint16(b[0:]), binary.BigEndian.Uint16(b[2:])
		_, _ = conn.WriteTo(sctpPacket(to, from, binary.BigEndian.Uint32(b[16:]), sctpInitAck,
			fmt.Sprintf("%s %s", name, client.(*net.IPAddr).IP)), client)
	}
}

// askSCTP sends an INIT and returns the pod, and the client address that it saw.
func (a *actor) askSCTP(to netip.AddrPort, source uint16, timeout time.Duration) (reply, error) {
	conn, err := a.raw(132, to.Addr())
	if err != nil {
		return reply{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return reply{}, err
	}
	if _, err := conn.Write(sctpPacket(source, to.Port(), 0, sctpInit, "")); err != nil {
		return reply{}, err
	}
	b := make([]byte, 2048)
	for {
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			return reply{}, err
		}
		if n < sctpHead+4 || b[12] != sctpInitAck || binary.BigEndian.Uint16(b[2:]) != source {
			continue
		}
		var r reply
		var client string
		if _, err := fmt.Sscanf(sctpText(b[:n]), "%s %s", &r.pod, &client); err != nil {
			return reply{}, fmt.Errorf("parse SCTP answer: %w", err)
		}
		if r.client, err = netip.ParseAddr(client); err != nil {
			return reply{}, fmt.Errorf("parse SCTP answer: %w", err)
		}
		return r, nil
	}
}

// raw receives from one address only; ICMP errors come back as errors.
func (a *actor) raw(protocol int, to netip.Addr) (*net.IPConn, error) {
	network := "ip4"
	if to.Is6() {
		network = "ip6"
	}
	conn, err := a.Dial(context.Background(), fmt.Sprintf("%s:%d", network, protocol), to.String())
	if err != nil {
		return nil, err
	}
	return conn.(*net.IPConn), nil
}

func (a *actor) ping(to netip.Addr, timeout time.Duration) error {
	protocol, request, answer := 1, byte(8), byte(0)
	if to.Is6() {
		protocol, request, answer = 58, 128, 129
	}
	conn, err := a.raw(protocol, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	packet := []byte{request, 0, 0, 0, 0x77, 0x65, 0, 1}
	// The kernel sums for IPv6.
	binary.BigEndian.PutUint16(packet[2:], ^(uint16(request)<<8 + 0x7765 + 1))
	if _, err := conn.Write(packet); err != nil {
		return err
	}
	b := make([]byte, 2048)
	for {
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			return err
		}
		if n >= 8 && b[0] == answer {
			return nil
		}
	}
}
