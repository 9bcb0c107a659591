package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// assignPayload writes whole bytes, and whole words of a checksum. For a smaller field, the rule
// loads the surrounding bytes, replaces the bits and writes all back.
func (r *ruleCompiler) assignPayload(s *syntax.Assign, target *payloadTerm) {
	w := want{typ: target.typ, width: target.bits, order: target.order, raw: target.header == &selector.HeaderRaw}
	v := r.target(s.Value, w)
	if !isConstant(v) {
		v = toOrder(v, target.order)
	}
	if whole := target.writable(); whole.bits != target.bits || whole.offset != target.offset {
		c, ok := v.(*constTerm)
		if !ok {
			fail(s.Value.Position(), "%s is not a constant: the kernel cannot put it among the other bits of %s", describe(s.Value), describe(s.Target))
		}
		r.unlistableWrite(target)
		target, v = whole, replaceBits(target, whole, c)
	}
	r.addValue(v, func(reg uint32) expr.Expr {
		return &expr.PayloadWrite{
			Source: reg, Base: uint32(target.layer - 1), Offset: target.offset / 8, Len: target.bytes(),
			CsumKind: target.header.Checksum.Kind, CsumOffset: target.header.Checksum.Offset,
			Pseudo: target.field.Pseudo || target.layer == selector.LayerInner,
		}
	})
}

// writable widens p to whole bytes. For checksums the number of bytes is even, and so is their
// offset if possible.
func (p *payloadTerm) writable() *payloadTerm {
	whole := *p
	_, extra := fieldShift(p.offset, p.bits)
	whole.offset = p.offset &^ 7
	whole.bits = (p.bits + extra + 7) &^ 7
	checksummed := p.layer == selector.LayerInner || p.header.Checksum.Kind != 0
	if checksummed && whole.bits%16 != 0 {
		whole.bits += 8
		if whole.offset%16 != 0 {
			whole.offset -= 8
		}
	}
	whole.width = whole.bits
	return &whole
}

func replaceBits(p, whole *payloadTerm, c *constTerm) term {
	shift := whole.offset + whole.bits - p.offset - p.bits
	info := whole.termInfo
	info.order = datatype.BigEndian
	keep := valueMask(whole.bits).xor(valueMask(p.bits).shl(shift))
	and := &binaryTerm{info, "&", whole, keep}
	return &binaryTerm{info, "^", and, c.v.shl(shift)}
}

// dataOrder returns NoOrder for raw payload, the selector's order for numbers, and otherwise the
// type's.
func (spec *anonymousSpec) dataOrder() datatype.Order {
	if len(spec.data) == 1 {
		switch p := spec.data[0]; {
		case p.Raw:
			return datatype.NoOrder
		case p.Type != datatype.Integer:
			return p.Type.Order
		}
	}
	return set.OrderOf(spec.data)
}
