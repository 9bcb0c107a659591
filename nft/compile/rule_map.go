package compile

import (
	"slices"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// mapExpr evaluates "key map TABLE". The type w is that of an anonymous map's
// data; a named map has its own.
func (r *ruleCompiler) mapExpr(x *syntax.Map, w want) term {
	if w.typ == nil && w.parts == nil {
		return fail(x.Pos, "a map is not possible here")
	}
	key := r.mapKey(x.Key)
	switch table := x.Table.(type) {
	case *syntax.SetRef:
		set := r.setRef(table, key)
		if !set.set.Map || set.set.Verdict || set.set.Object != "" {
			return fail(table.Pos, "@%s is not a map of values", table.Name)
		}
		return newLookup(x.Pos, key, set)
	case *syntax.Set:
		spec := &anonymousSpec{key: key, syntaxKey: x.Key, pos: table.Pos, isMap: true}
		return r.anonymousMap(x, table, spec, w)
	default:
		return fail(x.Pos, "a map needs { ... } or @name")
	}
}

// mapKey evaluates what is looked up in a map.
func (r *ruleCompiler) mapKey(x syntax.Expr) term {
	key := r.eval(x, want{})
	if isConstant(key) {
		return fail(x.Position(), "%s is a constant: nothing to look up", describe(x))
	}
	lookupCT(key)
	return key
}

// lookupCT refuses to look up the ct addresses that do not tell their
// protocol: nft could not tell the type of the set.
func lookupCT(key term) {
	c, ok := key.(*ctTerm)
	if !ok || c.key.Name != "saddr" && c.key.Name != "daddr" {
		return
	}
	fail(c.pos, "ct %s in a set or map does not tell the protocol: write \"ip %s\" or \"ip6 %s\"", c.key.Name, c.key.Name, c.key.Name)
}

// newLookup makes the term of a looked-up value.
func newLookup(pos syntax.Pos, key term, s *setTerm) *lookupTerm {
	parts, err := s.set.Data.Resolve()
	if err != nil {
		fail(pos, "map %s: %s", s.set.Name, err)
	}
	if s.set.Flags&set.FlagInterval != 0 {
		key = toBig(key)
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

// anonymousMap makes an anonymous map of values.
func (r *ruleCompiler) anonymousMap(x *syntax.Map, table *syntax.Set, spec *anonymousSpec, w want) term {
	keys := r.elementKeys(spec, table)
	values := make([]term, len(keys))
	for i, e := range table.Elems {
		if e.Value == nil {
			return fail(e.Pos, "element has no value: write KEY : VALUE")
		}
		if _, ok := e.Value.(*syntax.Verdict); ok {
			return fail(e.Value.Position(), "a verdict is not a value: use vmap")
		}
		values[i] = r.constant(e.Value, w)
		if len(e.Stmts) > 0 {
			return fail(e.Stmts[0].Position(), "an element of an anonymous map cannot have statements: declare a named map")
		}
		keys[i].elem.Comment = e.Comment
		if i > 0 && isSingle(values[i]) == spec.dataInterval {
			return fail(e.Value.Position(), "either all values of a map are ranges, or none is")
		}
		spec.dataInterval = !isSingle(values[i])
	}
	if w.parts == nil {
		spec.data = []set.Part{wantAsPart(w)}
	}
	for _, p := range w.parts {
		spec.data = append(spec.data, wantAsPart(p))
	}
	for i, v := range values {
		keys[i].elem.Data = packData(v, spec.data, spec.dataInterval)
	}
	elems := spec.pack(r.transferSet(spec, keys))
	set := r.newAnonymous(spec, elems)
	return newLookup(x.Pos, spec.key, set)
}

// wantAsPart is the part of data of a type.
func wantAsPart(w want) set.Part {
	return set.Part{Type: w.typ, Size: int(w.width+7) / 8, Bits: int(w.width), Order: w.order, Raw: w.raw}
}

// packData packs a map's value: the least and, for ranges, the
// greatest after it.
func packData(t term, parts []set.Part, interval bool) string {
	terms := []term{t}
	if c, ok := t.(*concatTerm); ok {
		terms = c.parts
	}
	var low, high [2 * set.MaxKey]byte
	lo, hi := low[:0], high[:0]
	for i, t := range terms {
		from, to := bounds(t)
		p := parts[i]
		lo = appendValue(lo, from, uint32(p.Size), p.Order)
		hi = appendValue(hi, to, uint32(p.Size), p.Order)
		if len(terms) > 1 {
			lo, hi = set.AppendPadding(lo, p), set.AppendPadding(hi, p)
		}
	}
	if interval {
		lo = append(lo, hi...)
	}
	return string(lo)
}

// vmapStmt takes the verdict that a map gives for a key.
type vmapStmt struct{ lookup *lookupTerm }

// vmap evaluates "key vmap TABLE".
func (r *ruleCompiler) vmap(x *syntax.Vmap) {
	key := r.mapKey(x.Key)
	var s *setTerm
	switch table := x.Table.(type) {
	case *syntax.SetRef:
		s = r.setRef(table, key)
		if !s.set.Verdict {
			fail(table.Pos, "@%s is not a map of verdicts", table.Name)
		}
		if s.set.Flags&set.FlagInterval != 0 {
			key = toBig(key)
		}
	case *syntax.Set:
		spec := &anonymousSpec{key: key, syntaxKey: x.Key, pos: table.Pos, isMap: true, verdict: true}
		s = r.anonymousVmap(table, spec)
		key = spec.key
	default:
		fail(x.Pos, "vmap needs { ... } or @name")
	}
	r.add(&vmapStmt{&lookupTerm{termInfo: termInfo{pos: x.Pos, typ: datatype.Verdict}, key: key, table: s}})
}

// anonymousVmap makes an anonymous verdict map.
func (r *ruleCompiler) anonymousVmap(table *syntax.Set, spec *anonymousSpec) *setTerm {
	keys := r.elementKeys(spec, table)
	for i, e := range table.Elems {
		v, ok := e.Value.(*syntax.Verdict)
		if !ok {
			fail(e.Pos, "element has no verdict: write KEY : accept, drop, jump CHAIN ...")
		}
		verdict := r.verdict(v)
		if len(e.Stmts) > 0 {
			fail(e.Stmts[0].Position(), "an element of an anonymous map cannot have statements: declare a named map")
		}
		keys[i].elem.Comment = e.Comment
		keys[i].elem.Data = set.VerdictData(verdict)
	}
	elems := spec.pack(r.transferSet(spec, keys))
	return r.newAnonymous(spec, elems)
}

// verdict checks a verdict and notes the chain that it names.
func (r *ruleCompiler) verdict(v *syntax.Verdict) set.Verdict {
	code, ok := datatype.VerdictCode(v.Kind)
	if !ok {
		fail(v.Pos, "unknown verdict %q", v.Kind)
	}
	out := set.Verdict{Code: code, Chain: v.Chain}
	if code != datatype.VerdictJump && code != datatype.VerdictGoto {
		return out
	}
	if err := datatype.CheckName(v.Chain); err != nil {
		fail(v.Pos, "%s: %s", v.Kind, err)
	}
	if r.scope != nil && !r.scope.Chain(v.Chain) {
		fail(v.Pos, "chain %q is not declared in this table", v.Chain)
	}
	if !slices.Contains(r.out.Chains, v.Chain) {
		r.out.Chains = append(r.out.Chains, v.Chain)
	}
	return out
}
