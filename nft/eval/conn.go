package eval

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
)

// Tuple holds a connection's addresses in one direction; ports may be 0.
type Tuple struct {
	Source, Destination netip.AddrPort
}

// set by translations (enum ip_conntrack_status)
const (
	statusSrcNAT     = 1 << 4
	statusDstNAT     = 1 << 5
	statusSrcNATDone = 1 << 7
	statusDstNATDone = 1 << 8
)

func hasPorts(protocol uint8) bool {
	return slices.Contains([]uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP, unix.IPPROTO_UDPLITE, unix.IPPROTO_DCCP}, protocol)
}

func (w *passage) tuple() Tuple {
	p := &w.out.Packet
	var source, destination uint16
	if at := w.headers.transport; hasPorts(w.headers.protocol) && !w.headers.fragment && len(p.Data) >= at+4 {
		source, destination = binary.BigEndian.Uint16(p.Data[at:]), binary.BigEndian.Uint16(p.Data[at+2:])
	}
	return Tuple{netip.AddrPortFrom(p.Source(), source), netip.AddrPortFrom(p.Destination(), destination)}
}

func (w *passage) track() {
	conn := w.out.Packet.Conn
	if conn == nil || conn.State != StateNew || conn.Original != (Tuple{}) {
		return
	}
	conn.Original = w.tuple()
	conn.Replies = Tuple{conn.Original.Destination, conn.Original.Source}
}

func (w *passage) translated(destination bool) {
	conn := w.out.Packet.Conn
	if conn == nil {
		return
	}
	now := w.tuple()
	was := conn.Replies
	conn.Replies = Tuple{now.Destination, now.Source}
	switch {
	case conn.Replies == was && (destination || !w.out.AnySourcePort): // translated to the same address and port
	case destination:
		conn.Status |= statusDstNAT
	default:
		conn.Status |= statusSrcNAT
	}
	conn.NAT = conn.Status&(statusDstNAT|statusSrcNAT) != 0
}

func (w *passage) follows() bool {
	conn := w.out.Packet.Conn
	return conn != nil && conn.NAT && conn.State != StateNew
}

func (w *passage) follow() {
	conn := w.out.Packet.Conn
	if conn.Original == (Tuple{}) {
		undecided("how the connection is translated is not known")
	}
	want := Tuple{conn.Replies.Destination, conn.Replies.Source}
	if conn.Reply {
		want = Tuple{conn.Original.Destination, conn.Original.Source}
	}
	now := w.tuple()
	if destination := w.hook == hookPrerouting || w.hook == hookOutput; destination {
		w.rewrite(true, now.Destination, want.Destination)
	} else {
		w.rewrite(false, now.Source, want.Source)
	}
}

func (w *passage) rewrite(destination bool, now, want netip.AddrPort) {
	p := &w.out.Packet
	if now.Addr() != want.Addr() {
		at, _ := addressAt(w.headers.family, destination)
		p.write(w.headers, at, want.Addr().AsSlice(), true)
	}
	if now.Port() != want.Port() {
		at := w.headers.transport
		if destination {
			at += 2
		}
		p.write(w.headers, at, binary.BigEndian.AppendUint16(nil, want.Port()), false)
	}
}

func (w *passage) status() uint32 {
	s := w.out.Packet.Conn.Status
	if w.out.Packet.Conn.State != StateNew || !w.rules.translates(w.headers.family) {
		return s
	}
	if w.looped {
		return s | statusDstNATDone | statusSrcNATDone
	}
	// once a nat chain exists, each place has a hook, which sets the bits after the nat chains
	switch w.hook {
	case hookPrerouting, hookOutput:
		if w.pastTranslation() {
			s |= statusDstNATDone
		}
		return s
	case hookForward:
		return s | statusDstNATDone
	}
	if w.pastTranslation() {
		s |= statusSrcNATDone
	}
	return s | statusDstNATDone
}

func (w *passage) pastTranslation() bool {
	at, place := w.current.Base.Priority, natPriority(w.hook)
	if w.current.isNAT() {
		return false
	}
	chains := w.rules.BaseChains(w.headers.family, w.hook)
	nat := slices.IndexFunc(chains, func(b BaseChain) bool { return b.isNAT() })
	if nat >= 0 {
		return slices.IndexFunc(chains, func(b BaseChain) bool { return b.Chain == w.current.Chain }) > nat
	}
	if at == place {
		undecided("it is not known whether chain %s is before the translation", w.current.Chain.Decl.Name)
	}
	return at > place
}

func (r *Ruleset) translates(family nft.Family) bool {
	for hook := range uint32(hookPostrouting + 1) {
		if slices.ContainsFunc(r.BaseChains(family, hook), func(b BaseChain) bool { return b.isNAT() }) {
			return true
		}
	}
	return false
}

func (m *machine) ctTuple(e *expr.CT) {
	conn := m.out.Packet.Conn
	t := conn.Original
	if t == (Tuple{}) {
		undecided("the addresses of the connection are not known")
	}
	if e.Direction == selector.DirectionReply {
		t = conn.Replies
	}
	end := t.Source
	switch e.Key {
	case unix.NFT_CT_DST, unix.NFT_CT_DST_IP, unix.NFT_CT_DST_IP6, unix.NFT_CT_PROTO_DST:
		end = t.Destination
	}
	switch e.Key {
	case unix.NFT_CT_SRC, unix.NFT_CT_DST:
		m.registers.store(e.Dest, end.Addr().AsSlice())
	case unix.NFT_CT_SRC_IP, unix.NFT_CT_DST_IP, unix.NFT_CT_SRC_IP6, unix.NFT_CT_DST_IP6:
		if four := e.Key == unix.NFT_CT_SRC_IP || e.Key == unix.NFT_CT_DST_IP; four != end.Addr().Is4() {
			m.breakIf(true)
			return
		}
		m.registers.store(e.Dest, end.Addr().AsSlice())
	case unix.NFT_CT_PROTO_SRC, unix.NFT_CT_PROTO_DST:
		if m.out.AnySourcePort && e.Direction == selector.DirectionReply && e.Key == unix.NFT_CT_PROTO_DST {
			undecided("the source port, which the kernel has chosen, is not known")
		}
		if !hasPorts(m.headers.protocol) {
			undecided("the ports of a connection of protocol %d are not known", m.headers.protocol)
		}
		m.registers.store(e.Dest, binary.BigEndian.AppendUint16(nil, end.Port()))
	case unix.NFT_CT_PROTOCOL:
		m.registers.store(e.Dest, []byte{m.headers.protocol})
	case unix.NFT_CT_L3PROTOCOL:
		m.registers.store(e.Dest, []byte{uint8(m.headers.family)})
	default:
		m.unknown(e)
	}
}
