package lint

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
)

type solver struct {
	table *eval.Table
	// meta and ct are by key
	network, transport field
	meta, ct           map[uint32]*field

	// by first byte
	registers map[uint32]operand
	// an expression may have changed every field
	unknown bool
	// comparisons without an exact value
	ranges []func() (contradicted bool)
	// the conditions of a rule exclude each other
	contradicted bool
	// excluded: no element of an anonymous set fits; open: a future element of an empty set could.
	excluded, open bool
}

func newSolver(t *eval.Table) *solver {
	return &solver{table: t, meta: make(map[uint32]*field), registers: make(map[uint32]operand), ct: make(map[uint32]*field)}
}

// rule adds the conditions of r; a verdict map must lead to chain to, if to is not empty. After an
// expression that may change any field, rule adds no more.
func (s *solver) rule(r *eval.Rule, to string) {
	s.ranges = nil
	clear(s.registers)
	for _, e := range r.Exprs {
		switch e := expr.Unwrap(e).(type) {
		case *google.Counter, *google.Limit, *google.Quota, *google.Connlimit, *expr.Log, *expr.Dynset, *expr.Objref, *google.Verdict, *google.Reject:
		case *google.Immediate:
			s.forget(e.Register)
		case *google.Payload:
			x, ok := operand{}, false
			switch uint32(e.Base) {
			case unix.NFT_PAYLOAD_NETWORK_HEADER:
				x, ok = newOperand(&s.network, int(e.Offset), int(e.Len))
			case unix.NFT_PAYLOAD_TRANSPORT_HEADER:
				x, ok = newOperand(&s.transport, int(e.Offset), int(e.Len))
			}
			s.load(e.DestRegister, x, ok)
		case *google.Meta:
			if e.SourceRegister {
				fieldOf(s.meta, uint32(e.Key)).changed = true
				continue
			}
			x, ok := s.metaOperand(e.Key)
			s.load(e.Register, x, ok)
		case *google.Cmp:
			if x, ok := s.registers[start(e.Register)]; ok {
				s.compare(x, e.Op, e.Data)
			}
		case *google.Range:
			if x, ok := s.registers[start(e.Register)]; ok && e.Op == google.CmpOpEq {
				s.within(x, e.FromData, e.ToData)
			}
		case *google.Lookup:
			if set, ok := s.table.Set(r, e.SetID, e.SetName); ok && !e.Invert {
				s.lookup(e, set, to)
			}
			if e.IsDestRegSet {
				s.forget(e.DestRegister)
			}
		case *expr.Bitwise:
			x, ok := s.registers[start(e.Source)]
			if ok && e.Op == expr.BitwiseBool {
				x, ok = x.masked(e.Mask, e.Xor)
			} else {
				ok = false
			}
			s.load(e.Dest, x, ok)
		case *expr.CT:
			if e.Source != 0 {
				fieldOf(s.ct, e.Key).changed = true
				continue
			}
			x, ok := s.ctOperand(e)
			s.load(e.Dest, x, ok)
		case *google.Byteorder:
			s.forget(e.DestRegister)
		case *google.Numgen:
			s.forget(e.Register)
		case *expr.Fib:
			s.forget(e.Register)
		default:
			clear(s.registers)
			s.unknown = s.unknown || changes(e)
		}
	}
	for _, contradicted := range s.ranges {
		s.contradicted = s.contradicted || contradicted()
	}
}

// Only loads into registers and the matches of iptables certainly change no field.
func changes(e any) bool {
	switch e := e.(type) {
	case *google.Rt, *expr.Hash, *expr.Socket, *expr.Xfrm, *expr.OSF:
		return false
	case *expr.Exthdr:
		return e.Dest == 0
	case *expr.Unknown:
		return e.Name != "match"
	default:
		return true
	}
}

// start returns the first byte of a register (enum nft_registers).
func start(register uint32) uint32 {
	slot, _ := expr.Slot(register)
	return 4 * slot
}

// load leaves the register unknown if the operand's field may have changed.
func (s *solver) load(register uint32, x operand, ok bool) {
	s.forget(register)
	if ok && !s.unknown && !x.field.changed {
		s.registers[start(register)] = x
	}
}

// forget forgets later registers too: their operands may begin in the overwritten bytes.
func (s *solver) forget(register uint32) {
	maps.DeleteFunc(s.registers, func(at uint32, x operand) bool { return int(at)+len(x.mask) > int(start(register)) })
}

func fieldOf(m map[uint32]*field, key uint32) *field {
	if m[key] == nil {
		m[key] = new(field)
	}
	return m[key]
}

// metaOperand accepts only keys that are constant while the rules run, unless a rule sets them.
func (s *solver) metaOperand(k google.MetaKey) (operand, bool) {
	n := 4
	switch k {
	case google.MetaKeyIIFNAME, google.MetaKeyOIFNAME:
		n = unix.IFNAMSIZ
	case google.MetaKeyL4PROTO, google.MetaKeyNFPROTO, google.MetaKeyPKTTYPE:
		n = 1
	case google.MetaKeyPROTOCOL, google.MetaKeyIIFTYPE, google.MetaKeyOIFTYPE:
		n = 2
	case google.MetaKeyMARK, google.MetaKeyIIF, google.MetaKeyOIF, google.MetaKeyLEN, google.MetaKeyPRIORITY, google.MetaKeySKUID, google.MetaKeySKGID:
	default:
		return operand{}, false
	}
	return newOperand(fieldOf(s.meta, uint32(k)), 0, n)
}

func (s *solver) ctOperand(e *expr.CT) (operand, bool) {
	n := 4
	switch {
	case e.Direction != selector.NoDirection:
		return operand{}, false
	case e.Key == unix.NFT_CT_DIRECTION:
		n = 1
	case e.Key != unix.NFT_CT_STATE && e.Key != unix.NFT_CT_STATUS && e.Key != unix.NFT_CT_MARK:
		return operand{}, false
	}
	return newOperand(fieldOf(s.ct, e.Key), 0, n)
}

func (s *solver) compare(x operand, op google.CmpOp, data []byte) {
	switch op {
	case google.CmpOpEq:
		if !x.could(data) {
			s.contradicted = true
			return
		}
		x.set(data, true)
	case google.CmpOpNeq:
		s.different(x, data)
	case google.CmpOpLt, google.CmpOpLte:
		s.within(x, make([]byte, len(data)), data)
	default:
		s.within(x, data, bytes.Repeat([]byte{0xff}, len(data)))
	}
}

// states to choose first, as in ct state
var preferred = [...]uint32{eval.StateNew, eval.StateEstablished, eval.StateRelated}

func (s *solver) different(x operand, data []byte) {
	now, _, final := x.known(len(data))
	if final {
		s.contradicted = s.contradicted || bytes.Equal(now, data)
		return
	}
	if !bytes.Equal(now, data) {
		return
	}
	if x.field == s.ct[unix.NFT_CT_STATE] {
		for _, state := range preferred {
			bit := binary.NativeEndian.AppendUint32(nil, state)
			if other, ok := x.masked(bit, make([]byte, 4)); ok && len(data) == 4 && !bytes.Equal(other.mask, make([]byte, 4)) {
				x.set(xor(data, bit), false)
				return
			}
		}
	}
	for i := range now {
		for bit := byte(1); bit != 0; bit <<= 1 {
			if x.mask[i]&bit&^x.field.required[x.at+i] != 0 {
				other := slices.Clone(data)
				other[i] ^= bit
				x.set(other, false)
				return
			}
		}
	}
}

func xor(a, b []byte) []byte {
	out := slices.Clone(a)
	for i := range out {
		out[i] ^= b[i]
	}
	return out
}

func (s *solver) within(x operand, from, to []byte) {
	outside := func(now []byte) bool { return bytes.Compare(now, from) < 0 || bytes.Compare(now, to) > 0 }
	s.ranges = append(s.ranges, func() bool {
		now, _, final := x.known(len(from))
		return final && outside(now)
	})
	if now, known, _ := x.known(len(from)); (!known || outside(now)) && x.could(from) {
		x.set(from, false)
	}
}

// lookup chooses an element, in a verdict map one whose chain is to.
func (s *solver) lookup(e *google.Lookup, in eval.Set, to string) {
	elements, anonymous := elementsOf(in), in.Decl.Flags&unix.NFT_SET_ANONYMOUS != 0
	s.open = s.open || len(elements) == 0 && !anonymous
	for _, element := range elements {
		if in.Decl.Verdict && to != "" {
			v, err := set.ParseVerdictData(element.Data)
			if err != nil || v.Chain != to {
				continue
			}
		}
		if element.Key == "" || s.choose(e.SourceRegister, in.Decl, element.Key) {
			return
		}
	}
	s.excluded = s.excluded || anonymous && in.Decl.Flags&unix.NFT_SET_INTERVAL == 0 && len(elements) < maxElements
}

func (s *solver) choose(register uint32, decl *set.Set, key string) bool {
	parts := decl.Key.Fields
	if len(parts) == 0 {
		parts = []uint32{decl.Key.Len}
	}
	at := uint32(0)
	var operands []operand
	var values [][]byte
	for _, n := range parts {
		x, ok := s.registers[start(register)+at]
		if ok && int(at+n) <= len(key) {
			operands, values = append(operands, x), append(values, []byte(key[at:at+n]))
		}
		at += (n + 3) &^ 3
	}
	for i, x := range operands {
		if !x.could(values[i]) {
			return false
		}
	}
	for i, x := range operands {
		x.set(values[i], false)
	}
	return true
}
