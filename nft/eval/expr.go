package eval

import (
	"bytes"
	"encoding/binary"
	"strconv"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// maxChoice is the greatest modulus of numgen and hash with one branch for each result.
const maxChoice = MaxOutcomes

func (m *machine) expr(r *Rule, e expr.Expr) {
	switch x := expr.Unwrap(e).(type) {
	case *google.Immediate:
		m.registers.store(x.Register, x.Data)
	case *google.Verdict:
		m.verdict = set.Verdict{Code: int32(x.Kind), Chain: x.Chain}
	case *google.Payload:
		m.payload(x)
	case *expr.PayloadWrite:
		m.payloadWrite(x)
	case *google.Meta:
		m.meta(x)
	case *expr.CT:
		m.ct(x)
	case *google.Cmp:
		c := bytes.Compare(m.registers.at(x.Register, uint32(len(x.Data))), x.Data)
		m.breakIf(!compares(x.Op, c))
	case *google.Range:
		v := m.registers.at(x.Register, uint32(len(x.FromData)))
		inside := bytes.Compare(v, x.FromData) >= 0 && bytes.Compare(v, x.ToData) <= 0
		m.breakIf(inside != (x.Op == google.CmpOpEq))
	case *expr.Bitwise:
		if !m.registers.bitwise(x) {
			m.unknown(e)
		}
	case *google.Byteorder:
		m.registers.byteorder(x)
	case *google.Lookup:
		m.lookup(r, x)
	case *expr.Dynset:
		m.dynset(r, x)
	case *google.Numgen:
		m.random(r, "numgen", x.Register, x.Modulus, x.Offset)
	case *expr.Hash:
		m.random(r, "hash", x.Dest, x.Mod, x.Offset)
	case *google.Notrack:
		m.untrack()
	case *google.Limit:
		m.breakIf(m.exceeds(e) != x.Over)
	case *google.Quota:
		m.breakIf(m.exceeds(e) != x.Over)
	case *expr.NAT:
		m.nat(x)
	case *google.Redir:
		m.redirect(x)
	case *expr.Masq:
		m.masquerade(x)
	case *expr.Fib:
		m.fib(x)
	case *expr.Objref:
		if x.Type != unix.NFT_OBJECT_COUNTER {
			m.unknown(e)
		}
	case *expr.Unknown:
		extension, ok := readExtension(x)
		if !ok {
			m.unknown(e)
		}
		extension.run(m)
	case *google.Reject:
		m.verdict = set.Verdict{Code: datatype.VerdictDrop}
	case *google.Counter, *expr.Log:
	default:
		m.unknown(e)
	}
}

func compares(op google.CmpOp, c int) bool {
	switch op {
	case google.CmpOpEq:
		return c == 0
	case google.CmpOpNeq:
		return c != 0
	case google.CmpOpLt:
		return c < 0
	case google.CmpOpLte:
		return c <= 0
	case google.CmpOpGt:
		return c > 0
	default:
		return c >= 0
	}
}

func (w *passage) exceeds(e expr.Expr) bool {
	what := expr.Format(e)
	if s, err := expr.StatefulStmt(e); err == nil {
		what = syntax.PrintStmt(s)
	}
	return w.choose(what, 2, 0, func(i int) string { return [...]string{"within", "exceeded"}[i] }) == 1
}

// random chooses a number. For too many numbers it branches on the intervals of the map keyed by
// the number.
func (m *machine) random(r *Rule, what string, register, modulus, offset uint32) {
	if modulus > maxChoice && m.randomInterval(r, what, register, modulus, offset) {
		return
	}
	if modulus == 0 || modulus > maxChoice {
		undecided("%s has %d results", what, modulus)
	}
	number := func(i int) string { return strconv.FormatUint(uint64(offset)+uint64(i), 10) }
	i := m.choose(what, int(modulus), 1/float64(modulus), number)
	m.registers.store(register, binary.NativeEndian.AppendUint32(nil, offset+uint32(i)))
}

func (r *registers) bitwise(e *expr.Bitwise) (known bool) {
	n := (e.Len + 3) &^ 3
	src, dst := bytes.Clone(r.at(e.Source, n)), r.at(e.Dest, n)
	var carry uint32
	switch e.Op {
	case expr.BitwiseBool:
		clear(dst)
		for i := range min(len(dst), len(e.Mask), len(e.Xor)) {
			dst[i] = src[i]&e.Mask[i] ^ e.Xor[i]
		}
	case expr.BitwiseLshift:
		for i := int(n) - 4; i >= 0; i -= 4 {
			w := binary.NativeEndian.Uint32(src[i:])
			binary.NativeEndian.PutUint32(dst[i:], w<<e.Shift|carry)
			carry = w >> (32 - e.Shift)
		}
	case expr.BitwiseRshift:
		for i := 0; i < int(n); i += 4 {
			w := binary.NativeEndian.Uint32(src[i:])
			binary.NativeEndian.PutUint32(dst[i:], w>>e.Shift|carry)
			carry = w << (32 - e.Shift)
		}
	default:
		return false
	}
	return true
}

func (r *registers) byteorder(e *google.Byteorder) {
	src := bytes.Clone(r.at(e.SourceRegister, e.Len))
	for i := uint32(0); e.Size > 0 && i+e.Size <= e.Len; i += e.Size {
		switch n := src[i:]; e.Size {
		case 2:
			binary.BigEndian.PutUint16(n, binary.NativeEndian.Uint16(n))
		case 4:
			binary.BigEndian.PutUint32(n, binary.NativeEndian.Uint32(n))
		case 8:
			binary.BigEndian.PutUint64(n, binary.NativeEndian.Uint64(n))
		default:
			undecided("byteorder of %d bytes", e.Size)
		}
	}
	r.store(e.DestRegister, src)
}
