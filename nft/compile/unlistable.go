package compile

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// unlistable says why nft 1.0.6 crashes when it lists an anonymous set or map, and
// with it the whole ruleset; nil where it does not. It takes such rules itself, but
// cannot sort the elements: it takes flags for an operation, and loses the lengths of
// numbers beside a field that it has to shift.
func (spec *anonymousSpec) unlistable(elems []Element) error {
	for _, p := range spec.parts() {
		if p.typ == datatype.CTLabel {
			return errorAt(spec.pos, "nft cannot list a set of %s: compare the labels one by one", p.typ.Name)
		}
	}
	if len(elems) < 2 {
		return nil
	}
	c, ok := spec.key.(*concatTerm)
	if !ok {
		if spec.interval && spec.key.info().isString() && adjacentWildcards(elems) {
			return errorAt(spec.pos, "nft cannot list a set of wildcards with no name between them: write a rule for each")
		}
		if t := spec.key.info().typ; spec.interval && t != nil && isFlags(t) {
			return errorAt(spec.pos, "nft cannot list a set with ranges of %s beside other elements: write the flags one by one", t.Name)
		}
		return nil
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
		if typ != nil && isFlags(typ) && severalFlags(elems, at, p.size) {
			return errorAt(part.info().pos, "nft cannot list a set with several flags of %s in one element: write an element for each", typ.Name)
		}
		at += p.padded()
	}
	if shifted && number && !spec.interval {
		return errorAt(spec.pos, "nft cannot list a set of a field that does not begin at a byte beside a number: compare them one after the other")
	}
	return nil
}

// unlistable says why nft 1.0.6 cannot list a declared set or map, and what uses it.
func (d *declaration) unlistable() error {
	for i, p := range slices.Concat(d.key, d.data) {
		switch {
		case p.typ == datatype.CTLabel:
			return fmt.Errorf("%s %q: nft cannot list sets of %s", d.word, d.text, p.typ.Name)
		case i >= len(d.keyExprs)+len(d.dataExprs):
		case slices.Concat(d.keyExprs, d.dataExprs)[i].jenkins():
			return fmt.Errorf("%s %q: nft crashes when it lists a set of the type of jhash: write symhash or numgen, whose type is the same", d.word, d.text)
		}
	}
	return nil
}

// jenkins reports whether the expression is jhash.
func (e typeOfExpr) jenkins() bool {
	return e.expr == exprHash && len(e.attrs) > 0 && e.attrs[0].value == unix.NFT_HASH_JENKINS
}

// adjacentWildcards returns two elements of text that are wildcards with nothing between
// them: nft merges them to a range, which it cannot list.
func adjacentWildcards(elems []Element) bool {
	sorted := slices.SortedFunc(slices.Values(elems), func(a, b Element) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(sorted); i++ {
		before := sorted[i-1]
		if before.Key == "" || before.KeyEnd == "" {
			continue
		}
		next := []byte(before.KeyEnd)
		for at := len(next) - 1; at >= 0; at-- {
			if next[at]++; next[at] != 0 {
				break
			}
		}
		if string(next) == sorted[i].Key {
			return true
		}
	}
	return false
}

// unlistableWrite says why nft 1.0.6 crashes when it lists a write to bits of raw
// payload: it takes them for several fields of the header that it knows there.
func (r *ruleCompiler) unlistableWrite(p *payloadTerm) error {
	h := r.ctx.at(p.layer)
	if p.header != &headerRaw || h == nil {
		return nil
	}
	begins, ends := -1, -1
	for i, f := range h.fields {
		if f.offset == p.offset {
			begins = i
		}
		if f.offset+f.bits == p.offset+p.bits {
			ends = i
		}
	}
	if begins < 0 || ends < 0 || begins == ends {
		return nil
	}
	return errorAt(p.pos, "nft cannot list a write to the fields %s to %s of %s at once: write them one by one", h.fields[begins].name, h.fields[ends].name, h.name)
}

// severalFlags reports whether a part of a key, at an offset, is anything but one
// flag or none in some element.
func severalFlags(elems []Element, at, size int) bool {
	for _, e := range elems {
		if e.Key == "" {
			continue
		}
		n := 0
		for _, b := range []byte(e.Key[at : at+size]) {
			n += bits.OnesCount8(b)
		}
		if n > 1 || e.KeyEnd != "" && e.KeyEnd[at:at+size] != e.Key[at:at+size] {
			return true
		}
	}
	return false
}

// unlistableOption is unlistable for a comparison of some bits of a TCP option that
// nft has no name for.
func unlistableOption(x syntax.Expr) error {
	for depth := 0; depth <= syntax.MaxDepth; depth++ {
		b, ok := x.(*syntax.Binary)
		if !ok {
			break
		}
		x = b.X
	}
	o, ok := x.(*syntax.Exthdr)
	if !ok || !o.Raw || o.Offset%8 == 0 && o.Length%8 == 0 {
		return nil
	}
	// An error comes again where the option is compiled.
	if r, err := resolveExthdr(o); err == nil && isNumber(r.ext.name) {
		return errorAt(o.Pos, "nft cannot list a comparison of bits of a tcp option that it does not know: want offset and length in whole bytes")
	}
	return nil
}
