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

// the kernel chooses a port
const anyPort = unix.NF_NAT_RANGE_PROTO_RANDOM | unix.NF_NAT_RANGE_PROTO_RANDOM_FULLY

func (m *machine) nat(e *expr.NAT) {
	if nft.Family(e.Family) != m.headers.family {
		return // not in family inet
	}
	destination := e.Type == unix.NFT_NAT_DNAT
	random := e.Flags&anyPort != 0
	if e.Flags&unix.NF_NAT_RANGE_NETMAP != 0 || random && destination {
		undecided("the kernel chooses the address or port of the translation")
	}
	var address, port []byte
	if e.AddrMin != 0 {
		_, n := addressAt(m.headers.family, destination)
		address = m.single(e.AddrMin, e.AddrMax, uint32(n))
	}
	switch {
	case !destination:
		port = m.sourcePortOf(e.PortMin, e.PortMax, random)
	case e.PortMin != 0:
		port = m.single(e.PortMin, e.PortMax, 2)
	}
	m.translate(destination, address, port)
}

func (w *passage) anySourcePort(chosen bool) {
	w.out.AnySourcePort = w.out.AnySourcePort || chosen && w.sourcePortAt() >= 0
}

// sourcePortAt returns the offset of the source port or an echo's identifier, or -1 without either.
func (w *passage) sourcePortAt() int {
	switch at := w.headers.transport; {
	case hasPorts(w.headers.protocol):
		return at
	case w.headers.protocol == unix.IPPROTO_ICMP || w.headers.protocol == unix.IPPROTO_ICMPV6:
		return at + 4
	default:
		return -1
	}
}

func (m *machine) sourcePortOf(from, to uint32, random bool) []byte {
	if from == 0 {
		m.anySourcePort(random)
		return nil
	}
	low := m.registers.at(from, 2)
	high := low
	if to != 0 {
		high = m.registers.at(to, 2)
	}
	return m.sourcePort(low, high, random)
}

// sourcePort returns nil if the port stays or the kernel chooses one. A port in the range stays if
// unused (get_unique_tuple in nf_nat_core.c).
func (w *passage) sourcePort(low, high []byte, random bool) []byte {
	at := w.headers.transport
	switch {
	case !hasPorts(w.headers.protocol):
		return nil
	case bytes.Equal(low, high) || w.headers.fragment || len(w.out.Packet.Data) < at+2:
		return low
	}
	now := w.out.Packet.Data[at : at+2]
	w.anySourcePort(random || bytes.Compare(now, low) < 0 || bytes.Compare(now, high) > 0)
	return nil
}

func (m *machine) masquerade(e *expr.Masq) {
	random := e.Flags&anyPort != 0
	if e.Flags&^uint32(anyPort|unix.NF_NAT_RANGE_PROTO_SPECIFIED) != 0 {
		undecided("the kernel chooses the port of the translation")
	}
	m.translate(false, m.addressOf(m.out.Packet.Out), m.sourcePortOf(e.MinPort, e.MaxPort, random))
}

func (m *machine) redirect(e *google.Redir) {
	if e.Flags&^uint32(unix.NF_NAT_RANGE_PROTO_SPECIFIED) != 0 {
		undecided("the kernel chooses the port of the translation")
	}
	var port []byte
	if e.RegisterProtoMin != 0 {
		port = m.single(e.RegisterProtoMin, e.RegisterProtoMax, 2)
	}
	m.translate(true, m.redirection(), port)
}

func (w *passage) redirection() []byte {
	switch {
	case w.hook == hookPrerouting:
		return w.addressOf(w.out.Packet.In)
	case w.headers.family == nft.FamilyIP:
		return []byte{127, 0, 0, 1}
	default:
		return netip.IPv6Loopback().AsSlice()
	}
}

func (w *passage) addressOf(i Interface) []byte {
	p := &w.out.Packet
	if w.host.Address != nil {
		_, n := addressAt(w.headers.family, false)
		if addr, ok := w.host.Address(i, p); ok && addr.BitLen() == 8*n {
			return addr.AsSlice()
		}
	}
	undecided("the address of interface %s is not known", i.Name)
	return nil
}

// A nil address or port stays.
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

func (m *machine) single(from, to, n uint32) []byte {
	v := m.registers.at(from, n)
	if to != 0 && to != from && !bytes.Equal(v, m.registers.at(to, n)) {
		undecided("the kernel chooses an address or port of a range")
	}
	return v
}
