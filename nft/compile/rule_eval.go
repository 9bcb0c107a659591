package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Constants have the type w; selectors have their own.
func (r *ruleCompiler) eval(x syntax.Expr, w want) term {
	switch x := x.(type) {
	case *syntax.Payload:
		return r.payload(x)
	case *syntax.Exthdr:
		return r.exthdr(x)
	case *syntax.RawPayload:
		return r.rawPayload(x)
	case *syntax.Meta:
		return r.meta(x)
	case *syntax.CT:
		return r.ct(x)
	case *syntax.FIB:
		return r.fib(x)
	case *syntax.Rt:
		return r.rt(x)
	case *syntax.Socket:
		return r.socket(x)
	case *syntax.OSF:
		return r.osf(x)
	case *syntax.IPsec:
		return r.ipsec(x)
	case *syntax.Numgen:
		return r.numgen(x).as(w)
	case *syntax.Hash:
		return r.hash(x).as(w)
	case *syntax.Binary:
		return r.binary(x, w)
	case *syntax.Concat:
		return r.concat(x, w)
	case *syntax.Map:
		return r.mapExpr(x, w)
	case *syntax.Const, *syntax.Prefix, *syntax.Range, *syntax.List:
		if w.typ == nil && w.parts == nil {
			return fail(x.Position(), "%s has no type here: begin with a selector such as ip saddr or meta mark", describe(x))
		}
		return r.constant(x, w)
	default:
		return fail(x.Position(), "%s is not possible here", describe(x))
	}
}

func (t *numberTerm) as(w want) *numberTerm {
	if w.typ != nil && w.width == 32 && !w.isString() {
		t.typ = w.typ
	}
	return t
}

func (r *ruleCompiler) concat(x *syntax.Concat, w want) term {
	if w.parts != nil && len(w.parts) != len(x.Parts) {
		return fail(x.Pos, "%s has %d parts: want %s", describe(x), len(x.Parts), w.name())
	}
	parts := make([]term, len(x.Parts))
	for i, p := range x.Parts {
		var pw want
		if w.parts != nil {
			pw = w.parts[i]
		}
		t := r.eval(p, pw)
		if c, ok := t.(*keyTerm); ok && c.ct {
			concatCT(c, parts[:i])
		}
		if t.info().typ == datatype.Bitmask {
			return fail(p.Position(), "%s cannot be a part of a concatenation: its type has no width of its own", describe(p))
		}
		if t.info().typ == datatype.String && w.parts == nil {
			return fail(p.Position(), "%s is text of any length, which cannot be a part of a concatenation", describe(p))
		}
		if _, ok := t.(*lookupTerm); ok {
			return fail(p.Position(), "a map cannot be a part of a concatenation")
		}
		parts[i] = t
	}
	return newConcat(x.Pos, parts)
}

// nft 1.0.6 compiles two ct ports but aborts when it lists them.
func concatCT(c *keyTerm, before []term) {
	switch c.key.Name {
	case "proto-src", "proto-dst":
		for _, t := range before {
			if o, ok := t.(*keyTerm); ok && (o.key.Name == "proto-src" || o.key.Name == "proto-dst") {
				fail(c.pos, "a second conntrack port in a concatenation makes nft(8) 1.0.6 abort when it lists the rule: use th sport or th dport, or a match of its own")
			}
		}
	case "saddr", "daddr":
		fail(c.pos, "ct %s in a concatenation does not tell the protocol: write \"ip %s\" or \"ip6 %s\"", c.key.Name, c.key.Name, c.key.Name)
	}
}

func (r *ruleCompiler) binary(x *syntax.Binary, w want) term {
	left := r.eval(x.X, w)
	info := *left.info()
	info.pos = x.Pos
	if isConstant(left) {
		return r.constantBinary(x, w)
	}
	if info.typ == nil || info.isString() {
		return fail(x.Pos, "%s is not possible with type %s", x.Op, typeName(left))
	}
	if x.Op == "<<" || x.Op == ">>" {
		return r.shift(x, left)
	}
	c := r.single(x.Y, wantLike(left))
	return &binaryTerm{info, x.Op, left, c.v}
}

// The kernel shifts in host byte order.
func (r *ruleCompiler) shift(x *syntax.Binary, left term) term {
	w := want{typ: datatype.Integer, width: 32, order: datatype.HostEndian}
	c := r.single(x.Y, w)
	if c.v.cmp(value{lo: uint64(left.info().bits)}) >= 0 {
		return fail(x.Y.Position(), "shift by %d bits: the value has %d", c.v.lo, left.info().bits)
	}
	left = toOrder(left, datatype.HostEndian)
	info := *left.info()
	info.pos, info.order = x.Pos, datatype.HostEndian
	return &binaryTerm{info, x.Op, left, c.v}
}

// Text, single bytes and constants need no conversion at run time.
func toOrder(t term, order datatype.Order) term {
	i := t.info()
	switch {
	case i.order == order || i.isString() || i.typ == nil:
		return t
	case isConstant(t) || i.bits < 16:
		i.order = order
		return t
	default:
		info := *i
		info.order = order
		return &swapTerm{info, t}
	}
}

// The kernel compares keys of intervals bytewise.
func toBig(t term) term {
	c, ok := t.(*concatTerm)
	if !ok {
		return toOrder(t, datatype.BigEndian)
	}
	for i, p := range c.parts {
		if info := *p.info(); info.order == datatype.HostEndian && !info.isString() {
			// In concatenations nft 1.0.6 converts single bytes too, without effect.
			info.order = datatype.BigEndian
			c.parts[i] = &swapTerm{info, p}
		}
	}
	return c
}
