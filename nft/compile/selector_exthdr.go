package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

type exthdrTerm struct {
	termInfo
	op  selector.ExthdrOp
	typ uint8
	// in bits
	offset  uint32
	present bool
	// TCP option without a name in nft
	unnamed bool
}

// exthdr puts dependencies at the head of the rule, like nft 1.0.6.
func (r *ruleCompiler) exthdr(x *syntax.Exthdr) term {
	t := newExthdr(x)
	switch x.Kind {
	case syntax.ExthdrIPv6:
		r.requireFirst(&selector.HeaderIP6, x.Pos)
	case syntax.ExthdrIPv4:
		r.requireFirst(&selector.HeaderIP, x.Pos)
	}
	return wholeBytes(t, t.offset)
}

func newExthdr(x *syntax.Exthdr) *exthdrTerm {
	e := must(selector.ResolveExthdr(x))
	info := termInfo{pos: x.Pos, typ: e.Type, bits: e.Bits, width: e.Bits, order: datatype.BigEndian}
	if e.Present {
		info.typ = datatype.Boolean
	}
	return &exthdrTerm{info, e.Op, e.Ext.Type, e.Offset, e.Present, selector.IsNumber(e.Ext.Name)}
}

// The dependency goes to the head of the rule; in bridges it is always the type of the Ethernet
// frame.
func (r *ruleCompiler) requireFirst(h *selector.Header, pos syntax.Pos) {
	switch base := r.ctx.at(selector.LayerNetwork); base {
	case h:
		return
	case nil:
	default:
		fail(pos, "conflicting protocols: the rule matches %s, and extensions of %s cannot match then", base.Name, h.Name)
	}
	r.first(func() { r.depend(r.ctx.at(selector.LayerLink), h, pos) })
}

// nft 1.0.6 aborts when it lists masked bits of TCP options without a name.
func checkOptionMask(s *matchStmt) {
	left, masked := s.left, false
	if b, ok := left.(*binaryTerm); ok && b.op == ">>" {
		left = b.x
	}
	if b, ok := left.(*binaryTerm); ok && b.op == "&" {
		left, masked = b.x, true
	}
	t, ok := left.(*exthdrTerm)
	if !ok || !t.unnamed {
		return
	}
	if p, ok := s.right.(*prefixTerm); ok && (p.len%8 != 0 || p.len == 0) {
		masked = true
	}
	if masked {
		fail(t.pos, "a mask on TCP option %d makes nft(8) 1.0.6 abort when it lists the rule: compare whole bytes", t.typ)
	}
}

// The kernel writes only TCP options, as two or four whole bytes.
func (r *ruleCompiler) assignExthdr(s *syntax.Assign, x *syntax.Exthdr) {
	t := newExthdr(x)
	whole := t.offset%8 == 0 && (t.bits == 16 || t.bits == 32)
	switch {
	case t.op != selector.ExthdrTCP || t.present:
		fail(x.Pos, "%s cannot be set: the kernel writes fields of TCP options only", describe(x))
	case !whole || t.offset < 16:
		fail(x.Pos, "%s cannot be set: the kernel writes fields of two or four bytes behind the option's length", describe(x))
	}
	r.addValue(r.target(s.Value, wantLike(t)), func(reg uint32) expr.Expr {
		return &expr.Exthdr{Op: t.op, Type: t.typ, Offset: t.offset / 8, Len: t.bytes(), Source: reg}
	})
}

func (r *ruleCompiler) resetOption(s *syntax.ResetOption) {
	r.add(exprStmt{&expr.Exthdr{Op: selector.ExthdrTCP, Type: newExthdr(s.Option).typ}})
}
