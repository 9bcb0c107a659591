package eval

import (
	"bytes"
	"net/netip"
	"slices"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// nat translates the source or destination of the first packet of a connection.
func (m *machine) nat(e *google.NAT) {
	if nft.Family(e.Family) != m.headers.family {
		return // in a table of the family inet it does not apply
	}
	destination := e.Type == google.NATTypeDestNAT
	random := e.Random || e.FullyRandom
	if e.Prefix || random && (destination || e.RegProtoMin != 0) {
		undecided("the kernel chooses the address or port of the translation")
	}
	var address, port []byte
	if e.RegAddrMin != 0 {
		_, n := addressAt(m.headers.family, destination)
		address = m.single(e.RegAddrMin, e.RegAddrMax, uint32(n))
	}
	if e.RegProtoMin != 0 {
		port = m.single(e.RegProtoMin, e.RegProtoMax, 2)
	}
	m.anySourcePort(random)
	m.translate(destination, address, port)
}

// anySourcePort notes that the kernel chooses the source port at random, if random is true.
func (m *machine) anySourcePort(random bool) {
	m.out.AnySourcePort = m.out.AnySourcePort || random && hasPorts(m.headers.protocol)
}

// masquerade translates the source to the address of the interface.
func (m *machine) masquerade(e *expr.Masq) {
	const anyPort = unix.NF_NAT_RANGE_PROTO_RANDOM | unix.NF_NAT_RANGE_PROTO_RANDOM_FULLY
	random := e.Flags&anyPort != 0
	if e.Flags&^uint32(anyPort|unix.NF_NAT_RANGE_PROTO_SPECIFIED) != 0 || random && e.MinPort != 0 {
		undecided("the kernel chooses the port of the translation")
	}
	var port []byte
	if e.MinPort != 0 {
		port = m.single(e.MinPort, e.MaxPort, 2)
	}
	m.anySourcePort(random)
	m.translate(false, m.addressOf(m.out.Packet.Out), port)
}

// redirect translates the destination to the node itself.
func (m *machine) redirect(e *google.Redir) {
	if e.Flags&^uint32(unix.NF_NAT_RANGE_PROTO_SPECIFIED) != 0 {
		undecided("the kernel chooses the port of the translation")
	}
	var port []byte
	if e.RegisterProtoMin != 0 {
		port = m.single(e.RegisterProtoMin, e.RegisterProtoMax, 2)
	}
	var address []byte
	switch {
	case m.hook == hookPrerouting:
		address = m.addressOf(m.out.Packet.In)
	case m.headers.family == nft.FamilyIP:
		address = []byte{127, 0, 0, 1}
	default:
		address = netip.IPv6Loopback().AsSlice()
	}
	m.translate(true, address, port)
}

// addressOf returns the address of an interface for a translation.
func (m *machine) addressOf(i Interface) []byte {
	p := &m.out.Packet
	if m.host.Address != nil {
		_, n := addressAt(m.headers.family, false)
		if addr, ok := m.host.Address(i, p); ok && addr.BitLen() == 8*n {
			return addr.AsSlice()
		}
	}
	undecided("the address of interface %s is not known", i.Name)
	return nil
}

// translate rewrites the source or destination, and ends the nat chains of the hook. A nil
// address or port stays.
func (m *machine) translate(destination bool, address, port []byte) {
	p := &m.out.Packet
	if address != nil {
		at, _ := addressAt(m.headers.family, destination)
		p.write(m.headers, at, address, true)
	}
	if port != nil {
		at := m.headers.transport
		if destination {
			at += 2
		}
		if !slices.Contains([]uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP}, m.headers.protocol) || m.headers.fragment || len(p.Data) < at+2 {
			undecided("a translation of ports of protocol %d", m.headers.protocol)
		}
		p.write(m.headers, at, port, false)
	}
	m.bound = true
	m.translated(destination)
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
