package compile

import (
	"cmp"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// The data of an anonymous map has type w.
func (r *ruleCompiler) mapExpr(x *syntax.Map, w want) term {
	if w.typ == nil && w.parts == nil {
		return fail(x.Pos, "a map is not possible here")
	}
	spec := r.mapSpec(byName(x.Key, x.Table))
	for _, p := range w.single() {
		spec.data = append(spec.data, wantAsPart(p))
	}
	var first *syntax.Elem
	table := r.mapTable(x.Table, &spec, func(e *syntax.Elem, out *set.Element) {
		first = cmp.Or(first, e)
		if e.Value == nil {
			fail(e.Pos, "element has no value: write KEY : VALUE")
		}
		if _, ok := e.Value.(*syntax.Verdict); ok {
			fail(e.Value.Position(), "a verdict is not a value: use vmap")
		}
		v := r.constant(e.Value, w)
		if e != first && isSingle(v) == spec.dataInterval {
			fail(e.Value.Position(), "either all values of a map are ranges, or none is")
		}
		spec.dataInterval = !isSingle(v)
		out.Data = packData(v, spec.data, spec.dataInterval)
	})
	return newLookup(x.Pos, spec.key, table)
}

func (r *ruleCompiler) mapSpec(x syntax.Expr) anonymousSpec {
	key := r.eval(x, want{})
	if isConstant(key) {
		fail(x.Position(), "%s is a constant: nothing to look up", describe(x))
	}
	lookupCT(key)
	return anonymousSpec{key: key, syntaxKey: x, isMap: true}
}

// data sets the data of an anonymous map's element; spec receives the final key.
func (r *ruleCompiler) mapTable(x syntax.Expr, spec *anonymousSpec, data func(*syntax.Elem, *set.Element)) *setTerm {
	ref, ok := x.(*syntax.SetRef)
	if !ok {
		literal := x.(*syntax.Set)
		for _, e := range literal.Elems {
			if len(e.Stmts) > 0 {
				fail(e.Stmts[0].Position(), "an element of an anonymous map cannot have statements: declare a named map")
			}
		}
		return r.anonymous(spec, literal, data)
	}
	table := r.setRef(ref, spec.key)
	switch s := table.set; {
	case spec.verdict && !s.Verdict:
		fail(ref.Pos, "@%s is not a map of verdicts", ref.Name)
	case spec.object != "" && s.Object == "":
		fail(ref.Pos, "@%s is not a map of objects", ref.Name)
	case spec.object != "" && s.Object != spec.object:
		fail(ref.Pos, "@%s is a map of kind %s: want %s", ref.Name, s.Object, spec.object)
	case !spec.verdict && spec.object == "" && (!s.Map || s.Verdict || s.Object != ""):
		fail(ref.Pos, "@%s is not a map of values", ref.Name)
	case s.Flags&set.FlagInterval != 0:
		spec.key = toBig(spec.key)
	}
	return table
}

// nft cannot know the set's type for ct addresses of an unknown protocol.
func lookupCT(key term) {
	if c, ok := key.(*keyTerm); ok && (c.key.Name == "saddr" || c.key.Name == "daddr") {
		fail(c.pos, "ct %s in a set or map does not tell the protocol: write \"ip %s\" or \"ip6 %s\"", c.key.Name, c.key.Name, c.key.Name)
	}
}

func newLookup(pos syntax.Pos, key term, s *setTerm) *lookupTerm {
	parts, err := s.set.Data.Resolve()
	if err != nil {
		fail(pos, "map %s: %s", s.set.Name, err)
	}
	t := &lookupTerm{termInfo: termInfo{pos: pos}, key: key, table: s}
	if len(parts) == 1 {
		p := parts[0]
		t.typ, t.bits, t.width, t.order = p.Type, uint32(8*p.Size), uint32(p.Bits), p.Order
	} else {
		for _, p := range parts {
			t.bits += uint32(8 * p.Padded())
		}
		t.width = t.bits
	}
	return t
}

func wantAsPart(w want) set.Part {
	return set.Part{Type: w.typ, Size: int(w.width+7) / 8, Bits: int(w.width), Order: w.order, Raw: w.raw}
}

// packData packs the least value of t and, for ranges, the greatest after it.
func packData(t term, parts []set.Part, interval bool) string {
	var low, high [2 * set.MaxKey]byte
	lo, hi := appendBounds(low[:0], high[:0], t, parts)
	if interval {
		lo = append(lo, hi...)
	}
	return string(lo)
}

type vmapStmt struct {
	key   term
	table *setTerm
}

func (r *ruleCompiler) vmap(x *syntax.Vmap) {
	spec := r.mapSpec(byName(x.Key, x.Table))
	spec.verdict = true
	table := r.mapTable(x.Table, &spec, func(e *syntax.Elem, out *set.Element) {
		v, ok := e.Value.(*syntax.Verdict)
		if !ok {
			fail(e.Pos, "element has no verdict: write KEY : accept, drop, jump CHAIN ...")
		}
		verdict := r.verdict(v)
		out.Data = set.VerdictData(verdict)
	})
	r.add(&vmapStmt{spec.key, table})
}

func (r *ruleCompiler) verdictStmt(v *syntax.Verdict) { r.add(&verdictStmt{r.verdict(v)}) }

func (r *ruleCompiler) verdict(v *syntax.Verdict) set.Verdict {
	code, ok := datatype.VerdictCode(v.Kind)
	if !ok {
		fail(v.Pos, "unknown verdict %q", v.Kind)
	}
	out := set.Verdict{Code: code, Chain: v.Chain}
	if code != datatype.VerdictJump && code != datatype.VerdictGoto {
		return out
	}
	checkName(v.Pos, v.Kind, v.Chain)
	if r.scope != nil && !r.scope.Chain(v.Chain) {
		fail(v.Pos, "chain %q is not declared in this table", v.Chain)
	}
	note(&r.out.Chains, v.Chain)
	return out
}
