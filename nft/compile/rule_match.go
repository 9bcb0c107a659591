package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// matchStmt is a comparison. Its op is "==", "!=", "<", ">", "<=", ">=", or
// "any" and "none" for flags.
type matchStmt struct {
	left  term
	op    string
	right term
}

// match evaluates a comparison.
func (r *ruleCompiler) match(m *syntax.Match) error {
	if err := unlistableOption(m.Left); err != nil {
		return err
	}
	left, err := r.eval(m.Left, want{})
	if err != nil {
		return err
	}
	if isConstant(left) {
		return syntax.ErrorAt(m.Pos, "%s is a constant: nothing to match", describe(m.Left))
	}
	if _, ok := left.(*lookupTerm); ok {
		return syntax.ErrorAt(m.Pos, "the result of a map cannot be compared: assign it or translate with it")
	}
	if err := checkSecmark(m, left); err != nil {
		return err
	}
	op := m.Op
	rightExpr := m.Right
	if x, ok := rightExpr.(*syntax.Masked); ok {
		if left, rightExpr, err = r.masked(m, x, left); err != nil {
			return err
		}
		if op == "" {
			op = "=="
		}
	}
	if b, ok := left.(*binaryTerm); ok && shifted(b) && b.typ != datatype.Integer {
		return syntax.ErrorAt(m.Pos, "datatype mismatch: a shifted %s cannot be compared, only integers can", typeName(left))
	}
	right, left, err := r.rightSide(m, rightExpr, left)
	if err != nil {
		return err
	}
	if t, ok := right.(outsideTerm); ok {
		right, op = t.rangeTerm, inverse(op)
	}
	out := &matchStmt{left: left, op: op, right: right}
	if op == "" || op == "==" {
		if err := r.learn(left, right); err != nil {
			return err
		}
	}
	if err := r.checkMatch(m, out); err != nil {
		return err
	}
	if err := out.transfer(m); err != nil {
		return err
	}
	if err := checkOptionMask(out); err != nil {
		return err
	}
	r.add(out)
	return nil
}

// masked evaluates "VALUE / MASK".
func (r *ruleCompiler) masked(m *syntax.Match, x *syntax.Masked, left term) (term, syntax.Expr, error) {
	switch m.Op {
	case "", "==", "!=":
	default:
		return nil, nil, syntax.ErrorAt(m.OpPos, "operator %s is not possible with a mask: want == or !=", m.Op)
	}
	info := *left.info()
	if info.typ == nil || !set.IsFlags(info.typ) {
		return nil, nil, syntax.ErrorAt(x.Pos, "a mask behind \"/\" is possible for flags only: write %s & MASK == VALUE", syntax.PrintExpr(m.Left))
	}
	mask, err := r.single(x.Mask, wantLike(left))
	if err != nil {
		return nil, nil, err
	}
	return &binaryTerm{info, "&", left, mask.v}, x.Value, nil
}

// rightSide evaluates the right side; it may change the left.
func (r *ruleCompiler) rightSide(m *syntax.Match, x syntax.Expr, left term) (right, newLeft term, err error) {
	switch x := x.(type) {
	case *syntax.SetRef:
		if err := lookupCT(left); err != nil {
			return nil, nil, err
		}
		s, err := r.setRef(x, left)
		if err != nil {
			return nil, nil, err
		}
		if s.set.Flags&set.FlagInterval != 0 {
			left = toBig(left)
		}
		return s, left, nil
	case *syntax.Set:
		if len(x.Elems) == 1 && plainElem(x.Elems[0]) {
			right, err = r.constant(x.Elems[0].Key, wantLike(left))
			if _, ok := right.(*concatTerm); err != nil || !ok {
				return right, left, err
			}
		}
		if err := lookupCT(left); err != nil {
			return nil, nil, err
		}
		return r.anonymousMatch(m, x, left)
	case *syntax.Range:
		if cyclic(left) && (m.Op == "" || m.Op == "==" || m.Op == "!=") {
			right, err = r.cycle(x, wantLike(left))
			return right, left, err
		}
	case *syntax.Const:
		if f, ok := left.(*fibTerm); ok && (x.Text == "exists" || x.Text == "missing") && !x.Quoted {
			if f.result != "oif" {
				return nil, nil, syntax.ErrorAt(x.Pos, "fib: %s is possible for oif only", x.Text)
			}
			f.present = true
			f.typ, f.bits, f.width = datatype.Boolean, 32, 32
			right, err = r.constant(x, wantLike(f))
			return right, f, err
		}
	}
	if _, ok := x.(*syntax.Concat); ok {
		return nil, nil, syntax.ErrorAt(x.Position(), "a concatenation can be matched with sets and maps only: write { %s }", syntax.PrintExpr(x))
	}
	right, err = r.constant(x, wantLike(left))
	return right, left, err
}

// plainElem reports whether an element is a key alone, or a key with what nft
// forgets of a single element.
func plainElem(e *syntax.Elem) bool {
	_, wild := e.Key.(*syntax.Wildcard)
	return !wild && e.Value == nil
}

// checkMatch checks the operator against its sides and resolves the byte order.
func (r *ruleCompiler) checkMatch(m *syntax.Match, s *matchStmt) error {
	info := s.left.info()
	switch s.op {
	case "!":
		c, ok := s.right.(*constTerm)
		if !ok || !set.IsFlags(c.typ) {
			return syntax.ErrorAt(m.OpPos, "operator ! is possible with flags only: want !=")
		}
		if _, ok := s.left.(*binaryTerm); ok {
			return syntax.ErrorAt(m.OpPos, "operator ! is not possible after an operation on bits")
		}
		s.op = "none"
	case "<", ">", "<=", ">=":
		if info.typ == nil {
			return syntax.ErrorAt(m.OpPos, "operator %s is not possible with a concatenation", s.op)
		}
		if _, ok := s.right.(*constTerm); !ok {
			return syntax.ErrorAt(m.OpPos, "operator %s wants a single value", s.op)
		}
		if info.isString() {
			return syntax.ErrorAt(m.OpPos, "operator %s is not possible with type %s", s.op, info.typ.Name)
		}
		s.left, s.right = toBig(s.left), toBig(s.right)
	case "", "==", "!=":
		switch right := s.right.(type) {
		case *rangeTerm:
			s.left, s.right = toBig(s.left), toBig(s.right)
		case *prefixTerm:
			if right.width < 8 || right.len%8 == 0 && rawBits(s.left) {
				return syntax.ErrorAt(right.pos, "nft(8) 1.0.6 aborts on this prefix of a field of %d bits: write a range", right.width)
			}
		case *constTerm:
			_, operation := s.left.(*binaryTerm)
			if s.op == "" && set.IsFlags(right.typ) && !operation {
				s.op = "any"
			}
		}
		if s.op == "" {
			s.op = "=="
		}
	default:
		return syntax.ErrorAt(m.OpPos, "unknown operator %q", s.op)
	}
	return nil
}

// shifted reports whether a term is a shift that the rule itself asks for; the
// shifts of bit fields keep the field's type.
func shifted(b *binaryTerm) bool {
	if b.op != "<<" && b.op != ">>" {
		return false
	}
	and, ok := b.x.(*binaryTerm)
	if !ok {
		return true
	}
	switch x := and.x.(type) {
	case *payloadTerm:
		return !x.field.Partial()
	case *exthdrTerm:
		return x.offset%8 == 0 && x.width%8 == 0
	default:
		return true
	}
}

// transfer moves what can be inverted from the left side of a comparison to
// its constants, as nft does: a shift of a bit field or to the left becomes one of the
// constant, an exclusive or changes sides.
func (s *matchStmt) transfer(m *syntax.Match) error {
	b, ok := s.left.(*binaryTerm)
	if !ok || b.op != ">>" && b.op != "^" && b.op != "<<" {
		return nil
	}
	move := mover(b)
	switch right := s.right.(type) {
	case *constTerm:
		if err := checkShift(m, b, right.v); err != nil {
			return err
		}
		right.v = move(right.v)
	case *rangeTerm:
		for _, v := range []value{right.from, right.to} {
			if err := checkShift(m, b, v); err != nil {
				return err
			}
		}
		right.from, right.to = move(right.from), move(right.to)
	case *setTerm:
		if shifted(b) && right.id != 0 && right.set.Flags&set.FlagInterval == 0 {
			return syntax.ErrorAt(m.Pos, "nft(8) 1.0.6 stores the elements of an anonymous set wrongly where a shifted value is looked up: shift the elements, or use ranges")
		}
		return nil
	default:
		return nil
	}
	if b.op != "^" {
		right := s.right.info()
		right.bits, right.width = b.bits, b.bits
	}
	s.left = b.x
	return nil
}

// checkShift refuses comparisons of a shift that is asked for: those that are never
// true, and those of which nft 1.0.6 makes another one, as it has the constant in
// network order or too wide.
func checkShift(m *syntax.Match, b *binaryTerm, v value) error {
	_, swapped := b.x.(*swapTerm)
	switch {
	case !shifted(b):
		return nil
	case b.op == ">>" || swapped:
		return syntax.ErrorAt(m.Pos, "nft(8) 1.0.6 compares a shifted value with another constant than the one given: use a mask and a shifted constant")
	case v.and(valueMask(uint32(b.y.lo))) != value{}:
		return syntax.ErrorAt(m.Right.Position(), "comparison is always false: the last %d bits of the shifted value are 0", b.y.lo)
	default:
		return nil
	}
}

// mover returns how a constant changes when the operation b moves to it.
func mover(b *binaryTerm) func(value) value {
	switch b.op {
	case "^":
		return func(v value) value { return v.xor(b.y) }
	case "<<":
		return func(v value) value { return v.shr(uint32(b.y.lo)) }
	}
	return func(v value) value { return v.shl(uint32(b.y.lo)) }
}
