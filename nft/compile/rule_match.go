package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
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
	left, err := r.eval(m.Left, want{})
	if err != nil {
		return err
	}
	if isConstant(left) {
		return errorAt(m.Pos, "%s is a constant: nothing to match", describe(m.Left))
	}
	if _, ok := left.(*lookupTerm); ok {
		return errorAt(m.Pos, "the result of a map cannot be compared: assign it or translate with it")
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
	right, left, err := r.rightSide(m, rightExpr, left)
	if err != nil {
		return err
	}
	out := &matchStmt{left: left, op: op, right: right}
	if op == "" || op == "==" {
		r.learn(left, right)
	}
	if err := r.checkMatch(m, out); err != nil {
		return err
	}
	r.transfer(out)
	r.add(out)
	return nil
}

// masked evaluates "VALUE / MASK".
func (r *ruleCompiler) masked(m *syntax.Match, x *syntax.Masked, left term) (term, syntax.Expr, error) {
	switch m.Op {
	case "", "==", "!=":
	default:
		return nil, nil, errorAt(m.OpPos, "operator %s is not possible with a mask: want == or !=", m.Op)
	}
	info := *left.info()
	if info.typ == nil || !info.typ.Bitmask {
		return nil, nil, errorAt(x.Pos, "a mask behind \"/\" is possible for flags only: write %s & MASK == VALUE", syntax.PrintExpr(m.Left))
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
		set, err := r.setRef(x, left)
		if err != nil {
			return nil, nil, err
		}
		if set.set.Map {
			return nil, nil, errorAt(x.Pos, "@%s is a map: use map or vmap", x.Name)
		}
		if set.set.Flags&SetInterval != 0 {
			left = toBig(left)
		}
		return set, left, nil
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
	case *syntax.Const:
		if f, ok := left.(*fibTerm); ok && (x.Text == "exists" || x.Text == "missing") && !x.Quoted {
			f.present = true
			f.typ, f.bits, f.width = datatype.Boolean, 32, 32
			right, err = r.constant(x, wantLike(f))
			return right, f, err
		}
	}
	if _, ok := x.(*syntax.Concat); ok {
		return nil, nil, errorAt(x.Position(), "a concatenation can be matched with sets and maps only: write { %s }", syntax.PrintExpr(x))
	}
	right, err = r.constant(x, wantLike(left))
	return right, left, err
}

// plainElem reports whether an element is only a key.
func plainElem(e *syntax.Elem) bool {
	_, wild := e.Key.(*syntax.Wildcard)
	return !wild && e.Value == nil && e.Comment == "" && e.Timeout == 0
}

// checkMatch checks the operator against its sides and resolves the byte order.
func (r *ruleCompiler) checkMatch(m *syntax.Match, s *matchStmt) error {
	info := s.left.info()
	if b, ok := s.left.(*binaryTerm); ok && info.typ == datatype.Integer && shifted(b) {
		return errorAt(m.Pos, "the result of a shift cannot be compared: use a mask and a shifted constant")
	}
	switch s.op {
	case "!":
		c, ok := s.right.(*constTerm)
		if !ok || !c.typ.Bitmask {
			return errorAt(m.OpPos, "operator ! is possible with flags only: want !=")
		}
		if _, ok := s.left.(*binaryTerm); ok {
			return errorAt(m.OpPos, "operator ! is not possible after an operation on bits")
		}
		s.op = "none"
	case "<", ">", "<=", ">=":
		if info.typ == nil {
			return errorAt(m.OpPos, "operator %s is not possible with a concatenation", s.op)
		}
		if _, ok := s.right.(*constTerm); !ok {
			return errorAt(m.OpPos, "operator %s wants a single value", s.op)
		}
		if info.isString() {
			return errorAt(m.OpPos, "operator %s is not possible with type %s", s.op, info.typ.Name)
		}
		s.left, s.right = toBig(s.left), toBig(s.right)
	case "", "==", "!=":
		switch right := s.right.(type) {
		case *rangeTerm:
			s.left, s.right = toBig(s.left), toBig(s.right)
		case *constTerm:
			_, operation := s.left.(*binaryTerm)
			if s.op == "" && right.typ.Bitmask && !operation {
				s.op = "any"
			}
		}
		if s.op == "" {
			s.op = "=="
		}
	default:
		return errorAt(m.OpPos, "unknown operator %q", s.op)
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
	p, ok := and.x.(*payloadTerm)
	return !ok || p.field.bits%8 == 0
}

// transfer moves what can be inverted from the left side of a comparison to
// its constants, as nft does: a shift right becomes a shift left of the
// constant, an exclusive or changes sides.
func (r *ruleCompiler) transfer(s *matchStmt) {
	b, ok := s.left.(*binaryTerm)
	if !ok || b.op != ">>" && b.op != "^" {
		return
	}
	move := mover(b)
	switch right := s.right.(type) {
	case *constTerm:
		right.v = move(right.v)
		right.bits, right.width = b.bits, b.bits
	case *rangeTerm:
		right.from, right.to = move(right.from), move(right.to)
		right.bits, right.width = b.bits, b.bits
	default:
		return
	}
	s.left = b.x
}

// mover returns how a constant changes when the operation b moves to it.
func mover(b *binaryTerm) func(value) value {
	if b.op == "^" {
		return func(v value) value { return v.xor(b.y) }
	}
	return func(v value) value { return v.shl(uint32(b.y.lo)) }
}
