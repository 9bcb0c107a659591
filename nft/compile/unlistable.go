package compile

import (
	"slices"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// unlistable rejects sets at which nft crashes when it lists them: nft cannot sort flags, or
// numbers next to a field that needs a shift.
func (spec *anonymousSpec) unlistable(elems []set.Element) {
	for _, p := range spec.parts() {
		if p.Type == datatype.CTLabel {
			fail(spec.pos, "nft cannot list a set of %s: compare the labels one by one", p.Type.Name)
		}
	}
	if len(elems) < 2 {
		return
	}
	c, ok := spec.key.(*concatTerm)
	if !ok {
		if spec.interval && spec.key.info().isString() && set.AdjacentWildcards(elems) {
			fail(spec.pos, "nft cannot list a set of wildcards with no name between them: write a rule for each")
		}
		if t := spec.key.info().typ; spec.interval && t != nil && set.IsFlags(t) {
			fail(spec.pos, "nft cannot list a set with ranges of %s beside other elements: write the flags one by one", t.Name)
		}
		return
	}
	shifted, number, at := false, false, 0
	for _, part := range c.parts {
		p := partOfTerm(part)
		typ := part.info().typ
		if b, ok := part.(*binaryTerm); ok && b.op == ">>" {
			shifted = true
			typ = b.x.info().typ
		}
		number = number || typ == datatype.Integer
		if typ != nil && set.IsFlags(typ) && set.SeveralFlags(elems, at, p.Size) {
			fail(part.info().pos, "nft cannot list a set with several flags of %s in one element: write an element for each", typ.Name)
		}
		at += p.Padded()
	}
	if shifted && number && !spec.interval {
		fail(spec.pos, "nft cannot list a set of a field that does not begin at a byte beside a number: compare them one after the other")
	}
}

// unlistableWrite rejects bits that nft reads as several header fields: nft crashes when it lists
// them.
func (r *ruleCompiler) unlistableWrite(p *payloadTerm) {
	h := r.ctx.at(p.layer)
	if p.header != &selector.HeaderRaw || h == nil {
		return
	}
	begins := slices.IndexFunc(h.Fields, func(f selector.Field) bool { return f.Offset == p.offset })
	ends := slices.IndexFunc(h.Fields, func(f selector.Field) bool { return f.Offset+f.Bits == p.offset+p.bits })
	if begins < 0 || ends < 0 || begins == ends {
		return
	}
	fail(p.pos, "nft cannot list a write to the fields %s to %s of %s at once: write them one by one", h.Fields[begins].Name, h.Fields[ends].Name, h.Name)
}

// nft cannot list comparisons of some bits of unnamed TCP options.
func unlistableOption(x syntax.Expr) {
	for b, ok := x.(*syntax.Binary); ok; b, ok = x.(*syntax.Binary) {
		x = b.X
	}
	o, ok := x.(*syntax.Exthdr)
	if !ok || !o.Raw || o.Offset%8 == 0 && o.Length%8 == 0 {
		return
	}
	if r, err := selector.ResolveExthdr(o); err == nil && selector.IsNumber(r.Ext.Name) {
		fail(o.Pos, "nft cannot list a comparison of bits of a tcp option that it does not know: want offset and length in whole bytes")
	}
}
