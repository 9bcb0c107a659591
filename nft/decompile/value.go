package decompile

import (
	"bytes"
	"math/big"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

type value struct {
	// the selector, nil for a constant, and for payload until the bits are known
	x     syntax.Expr
	typ   *datatype.Type
	bits  uint32
	order datatype.Order
	key   *selector.Key
	field *selector.Field
	// layer of payload, offset in bits
	base   selector.Layer
	offset uint32
	// a field of a header extension, named by op and ext
	extension bool
	op        selector.ExthdrOp
	ext       uint8
	// hexadecimal constants
	raw  bool
	data []byte
	// (value & mask) ^ xor, or nil
	mask, xor []byte
	// of a bit field in bits, or 0; its constants are shifted to the left
	width, shift uint
	// of a concatenation
	parts []*value
}

func keyValue(x syntax.Expr, k *selector.Key) *value {
	return &value{x: x, typ: k.Type, bits: k.Bits, order: k.Order}
}

func partValue(x syntax.Expr, p set.Part) *value {
	return &value{x: x, typ: p.Type, bits: uint32(p.Bits), order: p.Order}
}

func (v *value) slots() int {
	if v.data != nil {
		return (len(v.data) + 3) / 4
	}
	return int(v.bits+31) / 32
}

func (v *value) text() bool { return v.typ == datatype.IfName || v.typ == datatype.String }

func (v *value) flags() bool { return v.typ != nil && set.IsFlags(v.typ) }

func (v *value) number(b []byte) *big.Int {
	if v.order == datatype.HostEndian && set.LittleHost {
		b = slices.Clone(b)
		slices.Reverse(b)
	}
	return new(big.Int).SetBytes(b)
}

func (v *value) expr() syntax.Expr {
	if len(v.parts) > 0 {
		c := &syntax.Concat{}
		for _, p := range v.parts {
			c.Parts = append(c.Parts, p.expr())
		}
		return c
	}
	if v.x == nil {
		fail("payload", "the value has no selector")
	}
	if v.mask == nil {
		return v.x
	}
	x := v.x
	apply := func(op string, n *big.Int) { x = &syntax.Binary{Op: op, X: x, Y: v.constNumber(n)} }
	m, xor := v.number(v.mask), v.number(v.xor)
	all := ones(uint(8 * len(v.mask)))
	// nft takes the operation apart: (value & m) ^ xor | or
	or := new(big.Int)
	if m.Cmp(all) != 0 || xor.Sign() != 0 {
		or.And(m, xor).Xor(or, xor)
		xor.And(xor, m)
		m.Or(m, or)
	}
	if m.Cmp(all) != 0 {
		apply("&", m)
	}
	if xor.Sign() != 0 {
		apply("^", xor)
	}
	if or.Sign() != 0 {
		apply("|", or)
	}
	return x
}

func ones(n uint) *big.Int {
	one := big.NewInt(1)
	return new(big.Int).Sub(new(big.Int).Lsh(one, n), one)
}

func (v *value) constNumber(n *big.Int) syntax.Expr {
	var x syntax.Expr
	for flag := range strings.SplitSeq(v.formatNumber(n, false), " | ") {
		c := &syntax.Const{Text: flag}
		if x == nil {
			x = c
		} else {
			x = &syntax.Binary{Op: "|", X: x, Y: c}
		}
	}
	return x
}

func (v *value) formatNumber(n *big.Int, plain bool) string {
	size := 0
	if v.typ != nil {
		size = v.typ.Len()
	}
	switch {
	case v.typ == datatype.Bitmask || v.raw:
		return "0x" + n.Text(16)
	case size == 0, n.BitLen() > 8*size, v.typ.Bits == 1 && n.BitLen() > 1:
		return n.String()
	}
	b := n.FillBytes(make([]byte, size))
	if v.typ.Order == datatype.HostEndian && set.LittleHost {
		slices.Reverse(b)
	}
	if plain {
		return v.typ.FormatNumber(b)
	}
	return v.typ.Format(b)
}

func (v *value) format(b []byte, plain bool) string {
	if !v.text() {
		n := new(big.Int).Rsh(v.number(b), v.shift)
		if all := ones(v.width); v.width > 0 && n.Cmp(all) > 0 {
			n = all // open interval
		}
		return v.formatNumber(n, plain)
	}
	name, rest, _ := bytes.Cut(b, []byte{0})
	if bytes.ContainsAny(name, "\"\n") || len(bytes.Trim(rest, "\x00")) > 0 {
		fail("cmp", "the text has other characters")
	}
	if len(b) < int(v.bits/8) && len(name) == len(b) {
		return `"` + string(b) + `*"`
	}
	return v.typ.Format(append(slices.Clone(b), make([]byte, max(0, int(v.bits/8)-len(b)))...))
}

func (v *value) constant(b []byte) syntax.Expr { return &syntax.Const{Text: v.format(b, false)} }

// list returns nft's notation for any of the flags.
func (v *value) list(b []byte) syntax.Expr {
	return &syntax.Const{Text: strings.ReplaceAll(v.format(b, false), " | ", ",")}
}

func (v *value) span(from, to []byte) syntax.Expr {
	return &syntax.Range{From: &syntax.Const{Text: v.format(from, true)}, To: &syntax.Const{Text: v.format(to, true)}}
}

func (d *draft) bitwise(v *value, e *expr.Bitwise) *value {
	out := *v
	switch {
	case v.data != nil:
		fail("bitwise", "the operand is a constant")
	case e.Op == expr.BitwiseBool && v.mask == nil && len(e.Mask) == int(e.Len) && len(e.Xor) == int(e.Len) && e.Len > 0:
		out.mask, out.xor = e.Mask, e.Xor
		return &out
	case e.Op == expr.BitwiseRshift && v.mask != nil && v.x == nil && d.bitField(&out) && out.shift == uint(e.Shift):
		out.shift = 0
		return &out
	}
	d.finish(&out)
	switch e.Op {
	case expr.BitwiseBool:
		fail("bitwise", "there are two operations")
	case expr.BitwiseLshift, expr.BitwiseRshift:
		op := "<<"
		if e.Op == expr.BitwiseRshift {
			op = ">>"
		}
		out.x = &syntax.Binary{Op: op, X: out.x, Y: &syntax.Const{Text: big.NewInt(int64(e.Shift)).String()}}
		out.typ = datatype.Integer
	default:
		fail("bitwise", "the operation has no name")
	}
	return &out
}

func (d *draft) finish(v *value) {
	if d.resolve(v); v.mask != nil {
		v.x, v.mask, v.xor, v.field, v.key = v.expr(), nil, nil, nil, nil
	}
}

// joined returns one value or a concatenation.
func (d *draft) joined(name string, register, n uint32) *value {
	at, out := slot(name, register), &value{}
	for end := at + int(n+3)/4; at < end; {
		if at >= expr.Slots || d.regs[at] == nil || d.regs[at].slots() == 0 {
			fail(name, "a part of the value is not known")
		}
		v := *d.regs[at]
		if v.data == nil {
			d.resolve(&v)
		}
		out.parts = append(out.parts, &v)
		at += v.slots()
	}
	if len(out.parts) == 1 {
		return out.parts[0]
	}
	return out
}

func (d *draft) keyOf(name string, register uint32, t set.Type) *value {
	v := d.joined(name, register, t.Len)
	parts, err := t.Resolve()
	values := v.parts
	if len(values) == 0 {
		values = []*value{v}
	}
	if err == nil && len(parts) != len(values) {
		fail(name, "the key of the set has %d parts, and %d are looked up", len(parts), len(values))
	}
	for i, p := range values {
		if p.data != nil {
			if err != nil {
				fail(name, "the type of the set is not known")
			}
			p.x, p.data = partValue(nil, parts[i]).constant(p.data), nil
		}
	}
	return v
}

// A constant has the type of v.
func (d *draft) argument(name string, register uint32, v *value) syntax.Expr {
	in := *d.get(name, register)
	if in.data != nil {
		return v.list(in.data)
	}
	d.resolve(&in)
	return in.expr()
}

func (d *draft) assign(name string, target syntax.Expr, k *selector.Key, register uint32) {
	d.add(&syntax.Assign{Target: target, Value: d.argument(name, register, keyValue(target, k))})
}
