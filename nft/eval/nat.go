package eval

import (
	"bytes"
	"slices"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
)

// nat translates the source or destination of the first packet of a connection.
func (m *machine) nat(e *google.NAT) {
	if nft.Family(e.Family) != m.headers.family {
		return // in a table of the family inet it does not apply
	}
	destination := e.Type == google.NATTypeDestNAT
	at, n := addressAt(m.headers.family, destination)
	if e.Prefix || e.Random || e.FullyRandom {
		undecided("the kernel chooses the address or port of the translation")
	}
	p := &m.out.Packet
	if e.RegAddrMin != 0 {
		p.write(m.headers, at, m.single(e.RegAddrMin, e.RegAddrMax, uint32(n)), true)
	}
	if e.RegProtoMin != 0 {
		if !slices.Contains([]uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP}, m.headers.protocol) || m.headers.fragment {
			undecided("a translation of ports of protocol %d", m.headers.protocol)
		}
		port := m.headers.transport
		if destination {
			port += 2
		}
		if m.headers.protocol == unix.IPPROTO_SCTP || len(p.Data) < port+2 {
			undecided("the checksum after the translation is not known")
		}
		p.write(m.headers, port, m.single(e.RegProtoMin, e.RegProtoMax, 2), false)
	}
	m.bound = true
	if p.Conn != nil {
		p.Conn.NAT = true
	}
	m.verdict = set.Verdict{Code: datatype.VerdictAccept}
}

// single returns the only value of a range of addresses or ports.
func (m *machine) single(from, to, n uint32) []byte {
	v := m.registers.at(from, n)
	if to != 0 && to != from && !bytes.Equal(v, m.registers.at(to, n)) {
		undecided("the kernel chooses an address or port of a range")
	}
	return v
}
