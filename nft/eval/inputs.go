package eval

import (
	"encoding/binary"
	"strings"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
)

// ok is false for a short packet.
func (w *passage) payloadAt(base, offset, n uint32) (at int, ok bool) {
	at = int(offset)
	switch base {
	case unix.NFT_PAYLOAD_NETWORK_HEADER:
	case unix.NFT_PAYLOAD_TRANSPORT_HEADER:
		if w.headers.fragment {
			return 0, false
		}
		at += w.headers.transport
	default:
		undecided("bytes of the link header or of an inner packet are not known")
	}
	if w.out.AnySourcePort {
		for _, chosen := range []int{w.sourcePortAt(), w.out.Packet.checksumAt(w.headers)} {
			if chosen >= 0 && at < chosen+2 && at+int(n) > chosen {
				undecided("the source port, which the kernel has chosen, is not known")
			}
		}
	}
	return at, at+int(n) <= len(w.out.Packet.Data)
}

func (m *machine) payload(e *google.Payload) {
	if uint32(e.Base) == unix.NFT_PAYLOAD_LL_HEADER && e.Offset == 12 && e.Len == 2 && m.ofBridge() {
		m.registers.store(e.DestRegister, m.etherType())
		return
	}
	at, ok := m.payloadAt(uint32(e.Base), e.Offset, e.Len)
	if !ok {
		m.breakIf(true)
		return
	}
	m.registers.store(e.DestRegister, m.out.Packet.Data[at:at+int(e.Len)])
}

func (w *passage) ofBridge() bool { return w.current.Table.ID.Family == nft.FamilyBridge }

func (w *passage) etherType() []byte {
	if w.headers.family == nft.FamilyIP6 {
		return []byte{unix.ETH_P_IPV6 >> 8, unix.ETH_P_IPV6 & 0xff}
	}
	return []byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff}
}

func (m *machine) payloadWrite(e *expr.PayloadWrite) {
	at, ok := m.payloadAt(e.Base, e.Offset, e.Len)
	switch {
	case !ok:
		m.breakIf(true)
		return
	case e.CsumKind == 0 && (e.Base != unix.NFT_PAYLOAD_NETWORK_HEADER || m.headers.family != nft.FamilyIP6):
		m.unknown(e) // it does not correct the checksum
	}
	p := &m.out.Packet
	p.write(m.headers, at, m.registers.at(e.Source, e.Len), e.Pseudo)
	// nft_csum_replace writes the other of the two zeros
	if sum := at - int(e.Offset) + int(e.CsumOffset); e.CsumKind != 0 && sum+2 <= len(p.Data) && p.Data[sum] == 0 && p.Data[sum+1] == 0 {
		p.Data[sum], p.Data[sum+1] = 0xff, 0xff
	}
	h, err := m.out.Packet.parse()
	if err != nil {
		undecided("a rule makes the packet malformed: %v", err)
	}
	m.headers = h
}

func (m *machine) meta(e *google.Meta) {
	p := &m.out.Packet
	if e.SourceRegister {
		switch e.Key {
		case google.MetaKeyMARK:
			p.Mark = binary.NativeEndian.Uint32(m.registers.at(e.Register, 4))
		case google.MetaKeyNFTRACE:
			p.Trace = m.registers.at(e.Register, 1)[0] != 0
		default:
			undecided("setting of meta key %d is not known", e.Key)
		}
		return
	}
	number := func(n uint32) { m.registers.store(e.Register, binary.NativeEndian.AppendUint32(nil, n)) }
	in, out := m.interfaces()
	switch e.Key {
	case google.MetaKeyMARK:
		number(p.Mark)
	case google.MetaKeyLEN:
		number(uint32(len(p.Data)))
	case google.MetaKeyL4PROTO:
		m.registers.store(e.Register, []byte{m.headers.protocol})
	case google.MetaKeyNFPROTO:
		family := m.headers.family
		if m.ofBridge() {
			family = nft.FamilyBridge
		}
		m.registers.store(e.Register, []byte{uint8(family)})
	case google.MetaKeyPROTOCOL:
		m.registers.store(e.Register, m.etherType())
	case google.MetaKeyNFTRACE:
		trace := uint8(0)
		if p.Trace {
			trace = 1
		}
		m.registers.store(e.Register, []byte{trace})
	case google.MetaKeyIIF:
		number(in.Index)
	case google.MetaKeyOIF:
		number(out.Index)
	case google.MetaKeyIIFNAME:
		m.name(e.Register, in)
	case google.MetaKeyOIFNAME:
		m.name(e.Register, out)
	case google.MetaKeySKUID, google.MetaKeySKGID, google.MetaKeyCGROUP:
		m.owner(e)
	default:
		undecided("meta key %d is not known", e.Key)
	}
}

// everyUser begins a rule that any user's packet matches.
const everyUser = "meta skuid 0-4294967295 "

// Incoming packets have no socket, but an input hook may see the socket of an open connection.
func (m *machine) owner(e *google.Meta) {
	p := &m.out.Packet
	if p.In != (Interface{}) {
		if m.hook == hookInput && (p.Conn == nil || p.Conn.State != StateNew) {
			undecided("it is not known which socket receives the packet")
		}
		m.breakIf(true)
		return
	}
	value, what := p.Owner.UID, "user"
	switch e.Key {
	case google.MetaKeySKGID:
		value, what = p.Owner.GID, "group"
	case google.MetaKeyCGROUP:
		value, what = p.Owner.Cgroup, "cgroup"
	}
	if value == nil && strings.HasPrefix(m.running.String(), everyUser) {
		value = new(uint32)
	}
	if value == nil {
		undecided("it is not known which %s sends the packet", what)
	}
	m.registers.store(e.Register, binary.NativeEndian.AppendUint32(nil, *value))
}

func (w *passage) interfaces() (in, out Interface) {
	in, out = w.out.Packet.In, w.out.Packet.Out
	if w.ofBridge() {
		in, out = w.inPort, w.outPort
	}
	switch w.hook {
	case hookPrerouting, hookInput:
		return in, Interface{}
	case hookForward, hookPostrouting:
		// since Linux 5.10 a forwarded IP packet has its input interface in postrouting
		return in, out
	default:
		return Interface{}, out
	}
}

func (m *machine) name(register uint32, i Interface) {
	var name [datatype.IfNameSize]byte
	copy(name[:], i.Name)
	m.registers.store(register, name[:])
}

func (w *passage) beforeTracking() bool {
	if w.hook != hookPrerouting && w.hook != hookOutput {
		return false
	}
	priority := w.current.Base.Priority
	if priority == conntrackPriority {
		undecided("it is not known whether connection tracking is before chain %s", w.current.Chain.Decl.Name)
	}
	return priority < conntrackPriority
}

func (w *passage) untrack() {
	if conn := w.out.Packet.Conn; conn != nil && w.beforeTracking() {
		conn.State = StateUntracked
	}
}

func (m *machine) ct(e *expr.CT) {
	conn := m.out.Packet.Conn
	if conn == nil || m.ofBridge() {
		undecided("the connection is not known")
	}
	number := func(n uint32) { m.registers.store(e.Dest, binary.NativeEndian.AppendUint32(nil, n)) }
	before := m.beforeTracking()
	switch {
	case before && e.Key == unix.NFT_CT_STATE && e.Source == 0:
		number(StateInvalid)
	case before:
		m.breakIf(e.Source == 0)
	case conn.State == StateUntracked || conn.State == StateInvalid:
		if e.Key != unix.NFT_CT_STATE || e.Source != 0 {
			m.breakIf(e.Source == 0)
			return
		}
		number(conn.State)
	case e.Source != 0 && e.Key == unix.NFT_CT_MARK:
		conn.Mark = binary.NativeEndian.Uint32(m.registers.at(e.Source, 4))
	case e.Source != 0:
		m.unknown(e)
	case e.Direction != selector.NoDirection:
		m.ctTuple(e)
	case e.Key == unix.NFT_CT_STATUS:
		number(m.status())
	case e.Key == unix.NFT_CT_STATE:
		number(conn.State)
	case e.Key == unix.NFT_CT_MARK:
		number(conn.Mark)
	case e.Key == unix.NFT_CT_DIRECTION:
		direction := uint8(0)
		if conn.Reply {
			direction = 1
		}
		m.registers.store(e.Dest, []byte{direction})
	default:
		m.unknown(e)
	}
}
