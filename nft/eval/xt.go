package eval

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// Data of nft_compat is a structure of include/uapi/linux/netfilter, in the machine's byte order
// except for addresses and ports of translations.

type extension struct {
	name   string
	rev    uint32
	info   []byte
	target bool
}

func readExtension(e *expr.Unknown) (x extension, ok bool) {
	x.target = e.Name == "target"
	x.name, x.rev, x.info, ok = e.Extension()
	return x, ok
}

func (x *extension) known(n int) []byte {
	if len(x.info) < n {
		undecided("the data of %s revision %d is too short", x.name, x.rev)
	}
	return x.info[:n]
}

func (x *extension) u16(at int) uint16 { return binary.NativeEndian.Uint16(x.known(at + 2)[at:]) }
func (x *extension) u32(at int) uint32 { return binary.NativeEndian.Uint32(x.known(at + 4)[at:]) }
func (x *extension) u8(at int) uint8   { return x.known(at + 1)[at] }

func (x *extension) run(m *machine) {
	if x.target {
		x.act(m)
		return
	}
	switch {
	case x.name == "comment":
	case x.name == "addrtype" && x.rev == 1:
		m.breakIf(!x.matchesAddressTypes(m))
	case x.name == "conntrack" && x.rev >= 2 && x.rev <= 3:
		m.breakIf(!x.matchesConn(m))
	case x.name == "tcp" || x.name == "udp":
		m.breakIf(!x.matchesTransport(m))
	case x.name == "multiport" && x.rev == 1:
		m.breakIf(!x.matchesMultiport(m))
	case x.name == "mark" && x.rev == 1: // mark, mask, invert
		m.breakIf((m.out.Packet.Mark&x.u32(4) == x.u32(0)) == (x.u8(8) != 0))
	case x.name == "statistic" || x.name == "limit" || x.name == "hashlimit" || x.name == "recent":
		m.breakIf(m.choose("match "+x.name, 2, 0, func(i int) string { return [...]string{"matches", "does not match"}[i] }) == 1)
	default:
		undecided("match %s of iptables is not known", x.name)
	}
}

// matchesAddressTypes reads struct xt_addrtype_info_v1: type bits of source and destination, flags.
func (x *extension) matchesAddressTypes(m *machine) bool {
	const invertSource, invertDestination, limits = 1, 2, 4 | 8
	flags := x.u32(4)
	if flags&limits != 0 {
		undecided("match addrtype with an interface is not known")
	}
	is := func(types uint16, addr netip.Addr, invert bool) bool {
		if types == 0 {
			return true
		}
		if m.host.AddressType == nil {
			undecided("the type of address %s is not known", addr)
		}
		kind, ok := m.host.AddressType(addr)
		if !ok {
			undecided("the type of address %s is not known", addr)
		}
		return (types&(1<<kind) != 0) != invert
	}
	p := &m.out.Packet
	return is(x.u16(0), p.Source(), flags&invertSource != 0) && is(x.u16(2), p.Destination(), flags&invertDestination != 0)
}

// matchesConn reads struct xt_conntrack_mtinfo2 and 3.
func (x *extension) matchesConn(m *machine) bool {
	const flagState, flagsAt = 1, 8*16 + 2*4 + 5*2
	const snat, dnat, untracked = 1 << 6, 1 << 7, 1 << 8
	flags, invert, mask := x.u16(flagsAt), x.u16(flagsAt+2), x.u16(flagsAt+4)
	if flags != flagState {
		undecided("match conntrack compares more than states")
	}
	c := m.out.Packet.Conn
	if c == nil {
		undecided("the connection of the packet is not known")
	}
	// as in ct state, except untracked (XT_CONNTRACK_STATE_*)
	state := uint16(StateInvalid)
	if !m.beforeTracking() {
		state = uint16(c.State) //nolint:gosec // one of five bits
		if c.State == StateUntracked {
			state = untracked
		}
		status := m.status()
		if status&statusSrcNAT != 0 {
			state |= snat
		}
		if status&statusDstNAT != 0 {
			state |= dnat
		}
	}
	return (mask&state != 0) != (invert&flagState != 0)
}

func (w *passage) ports() (source, destination uint16, ok bool) {
	at, ok := w.payloadAt(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 0, 4)
	if !ok {
		return 0, 0, false
	}
	b := w.out.Packet.Data[at:]
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), true
}

// matchesTransport reads struct xt_tcp and xt_udp: source and destination ports, for TCP an option
// and flags, inversions.
func (x *extension) matchesTransport(m *machine) bool {
	source, destination, ok := m.ports()
	if !ok {
		return false
	}
	within := func(port uint16, at int, invert bool) bool {
		return (port >= x.u16(at) && port <= x.u16(at+2)) != invert
	}
	tcp := x.name == "tcp"
	invertAt := 8
	if tcp {
		invertAt = 11
	}
	invert := x.u8(invertAt)
	if !within(source, 0, invert&1 != 0) || !within(destination, 4, invert&2 != 0) {
		return false
	}
	if !tcp {
		return true
	}
	if x.u8(8) != 0 {
		undecided("match tcp with an option is not known")
	}
	at, ok := m.payloadAt(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1)
	return ok && (m.out.Packet.Data[at]&x.u8(9) == x.u8(10)) != (invert&4 != 0)
}

// matchesMultiport reads struct xt_multiport_v1: selected ports, their number, 15 ports, 15 marks
// of ranges, invert.
func (x *extension) matchesMultiport(m *machine) bool {
	const sources, destinations, invertAt = 0, 1, 2 + 15*2 + 15
	source, destination, ok := m.ports()
	if !ok {
		return false
	}
	found := false
	for i := 0; i < int(min(x.u8(1), 15)); i++ {
		low := x.u16(2 + 2*i)
		high := low
		if x.u8(2+15*2+i) != 0 {
			i++
			high = x.u16(2 + 2*min(i, 14))
		}
		s, d := source >= low && source <= high, destination >= low && destination <= high
		found = found || s && x.u8(0) != destinations || d && x.u8(0) != sources
	}
	return found != (x.u8(invertAt) != 0)
}

func (x *extension) act(m *machine) {
	switch {
	case x.name == "LOG" || x.name == "NFLOG" || x.name == "TRACE":
	case x.name == "NOTRACK" || x.name == "CT" && x.u16(0)&1 != 0: // XT_CT_NOTRACK
		m.untrack()
	case x.name == "REJECT":
		m.verdict = set.Verdict{Code: datatype.VerdictDrop}
	case x.name == "MARK" && x.rev == 2: // mark, mask
		p := &m.out.Packet
		p.Mark = p.Mark&^x.u32(4) ^ x.u32(0)
	case x.name == "DNAT" || x.name == "SNAT" || x.name == "MASQUERADE" || x.name == "REDIRECT":
		x.translateRange(m)
	default:
		undecided("target %s of iptables is not known", x.name)
	}
}

// translateRange reads struct nf_nat_ipv4_multi_range_compat, nf_nat_range or nf_nat_range2.
func (x *extension) translateRange(m *machine) {
	const mapIPs, ports, random, fully = 1, 2, 4, 16
	var flags uint32
	var first, last, low, high []byte
	if m.headers.family == nft.FamilyIP && x.rev == 0 {
		// number of ranges, which is 1; flags, addresses, ports
		b := x.known(4 + 4 + 2*4 + 2*2)
		flags = binary.NativeEndian.Uint32(b[4:])
		first, last, low, high = b[8:12], b[12:16], b[16:18], b[18:20]
	} else {
		b := x.known(4 + 2*16 + 2*2)
		_, n := addressAt(m.headers.family, false)
		flags = binary.NativeEndian.Uint32(b)
		first, last, low, high = b[4:4+n], b[20:20+n], b[36:38], b[38:40]
	}
	destination := x.name == "DNAT" || x.name == "REDIRECT"
	if flags&^uint32(mapIPs|ports|random|fully) != 0 || destination && flags&(random|fully) != 0 {
		undecided("the kernel chooses the address or port of the translation")
	}
	var address, port []byte
	switch {
	case x.name == "MASQUERADE":
		address = m.addressOf(m.out.Packet.Out)
	case x.name == "REDIRECT":
		address = m.redirection()
	case flags&mapIPs != 0:
		if !bytes.Equal(first, last) {
			undecided("the kernel chooses an address of a range")
		}
		address = first
	}
	switch {
	case flags&ports == 0 && !destination:
		m.anySourcePort(flags&(random|fully) != 0)
	case flags&ports == 0:
	case !destination:
		port = m.sourcePort(low, high, flags&(random|fully) != 0)
	default:
		if !bytes.Equal(low, high) {
			undecided("the kernel chooses a port of a range")
		}
		port = low
	}
	m.translate(destination, address, port)
}
