package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// op is "==", "!=", "<", ">", "<=", ">=", or "any" and "none" for flags
type matchStmt struct {
	left  term
	op    string
	right term
}

func (r *ruleCompiler) match(m *syntax.Match) {
	unlistableOption(m.Left)
	left := r.eval(byName(m.Left, m.Right), want{})
	if isConstant(left) {
		fail(m.Pos, "%s is a constant: nothing to match", describe(m.Left))
	}
	if _, ok := left.(*lookupTerm); ok {
		fail(m.Pos, "the result of a map cannot be compared: assign it or translate with it")
	}
	checkSecmark(m, left)
	op := m.Op
	rightExpr := m.Right
	if x, ok := rightExpr.(*syntax.Masked); ok {
		left, rightExpr = r.masked(m, x, left)
		if op == "" {
			op = "=="
		}
	}
	if b, ok := left.(*binaryTerm); ok && shifted(b) && b.typ != datatype.Integer {
		fail(m.Pos, "datatype mismatch: a shifted %s cannot be compared, only integers can", typeName(left))
	}
	right, left := r.rightSide(m, rightExpr, left)
	if t, ok := right.(outsideTerm); ok {
		right, op = t.rangeTerm, inverse(op)
	}
	out := &matchStmt{left: left, op: op, right: right}
	if op == "" || op == "==" {
		r.learn(left, right)
	}
	r.checkMatch(m, out)
	out.transfer(m)
	checkOptionMask(out)
	r.add(out)
}

func (r *ruleCompiler) masked(m *syntax.Match, x *syntax.Masked, left term) (term, syntax.Expr) {
	switch m.Op {
	case "", "==", "!=":
	default:
		fail(m.OpPos, "operator %s is not possible with a mask: want == or !=", m.Op)
	}
	info := *left.info()
	if info.typ == nil || !set.IsFlags(info.typ) {
		fail(x.Pos, "a mask behind \"/\" is possible for flags only: write %s & MASK == VALUE", syntax.PrintExpr(m.Left))
	}
	mask := r.single(x.Mask, wantLike(left))
	return &binaryTerm{info, "&", left, mask.v}, x.Value
}

// rightSide evaluates x, the right side of m, and may change the left side.
func (r *ruleCompiler) rightSide(m *syntax.Match, x syntax.Expr, left term) (right, newLeft term) {
	switch x := x.(type) {
	case *syntax.SetRef:
		lookupCT(left)
		s := r.setRef(x, left)
		if s.set.Flags&set.FlagInterval != 0 {
			left = toBig(left)
		}
		return s, left
	case *syntax.Set:
		if len(x.Elems) == 1 && plainElem(x.Elems[0]) {
			right = r.constant(x.Elems[0].Key, wantLike(left))
			if _, ok := right.(*concatTerm); !ok {
				return right, left
			}
		}
		lookupCT(left)
		return r.anonymousMatch(m, x, left)
	case *syntax.Range:
		if cyclic(left) && (m.Op == "" || m.Op == "==" || m.Op == "!=") {
			return r.cycle(x, wantLike(left)), left
		}
	case *syntax.Const:
		if f, ok := left.(*fibTerm); ok && (x.Text == "exists" || x.Text == "missing") && !x.Quoted {
			if f.result != "oif" {
				fail(x.Pos, "fib: %s is possible for oif only", x.Text)
			}
			f.present = true
			f.typ, f.bits, f.width = datatype.Boolean, 32, 32
			return r.constant(x, wantLike(f)), f
		}
	}
	if _, ok := x.(*syntax.Concat); ok {
		fail(x.Position(), "a concatenation can be matched with sets and maps only: write { %s }", syntax.PrintExpr(x))
	}
	return r.constant(x, wantLike(left)), left
}

// Options that nft ignores do not count.
func plainElem(e *syntax.Elem) bool {
	_, wild := e.Key.(*syntax.Wildcard)
	return !wild && e.Value == nil
}

func (r *ruleCompiler) checkMatch(m *syntax.Match, s *matchStmt) {
	info := s.left.info()
	switch s.op {
	case "!":
		c, ok := s.right.(*constTerm)
		if !ok || !set.IsFlags(c.typ) {
			fail(m.OpPos, "operator ! is possible with flags only: want !=")
		}
		if _, ok := s.left.(*binaryTerm); ok {
			fail(m.OpPos, "operator ! is not possible after an operation on bits")
		}
		s.op = "none"
	case "<", ">", "<=", ">=":
		if info.typ == nil {
			fail(m.OpPos, "operator %s is not possible with a concatenation", s.op)
		}
		if _, ok := s.right.(*constTerm); !ok {
			fail(m.OpPos, "operator %s wants a single value", s.op)
		}
		if info.isString() {
			fail(m.OpPos, "operator %s is not possible with type %s", s.op, info.typ.Name)
		}
		s.left, s.right = toBig(s.left), toBig(s.right)
	case "", "==", "!=":
		switch right := s.right.(type) {
		case *rangeTerm:
			s.left, s.right = toBig(s.left), toBig(s.right)
		case *prefixTerm:
			if right.width < 8 || right.len%8 == 0 && rawBits(s.left) {
				fail(right.pos, "nft(8) 1.0.6 aborts on this prefix of a field of %d bits: write a range", right.width)
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
		fail(m.OpPos, "unknown operator %q", s.op)
	}
}

// shifted reports whether the rule's text has the shift; shifts of bit fields keep the field's
// type.
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

// transfer moves invertible operations to the constants, like nft: shifts of a bit field or to the
// left, and exclusive or.
func (s *matchStmt) transfer(m *syntax.Match) {
	b, ok := s.left.(*binaryTerm)
	if !ok || b.op != ">>" && b.op != "^" && b.op != "<<" {
		return
	}
	switch right := s.right.(type) {
	case *constTerm, *rangeTerm:
		from, to := bounds(right)
		checkShift(m, b, from)
		checkShift(m, b, to)
		b.moveTo(right)
	case *setTerm:
		if shifted(b) && right.id != 0 && right.set.Flags&set.FlagInterval == 0 {
			fail(m.Pos, "nft(8) 1.0.6 stores the elements of an anonymous set wrongly where a shifted value is looked up: shift the elements, or use ranges")
		}
		return
	default:
		return
	}
	if b.op != "^" {
		right := s.right.info()
		right.bits, right.width = b.bits, b.bits
	}
	s.left = b.x
}

// checkShift rejects comparisons of shifts that are never true. It also rejects comparisons that
// nft 1.0.6 compiles with the constant in network order or too wide.
func checkShift(m *syntax.Match, b *binaryTerm, v value) {
	_, swapped := b.x.(*swapTerm)
	switch {
	case !shifted(b):
	case b.op == ">>" || swapped:
		fail(m.Pos, "nft(8) 1.0.6 compares a shifted value with another constant than the one given: use a mask and a shifted constant")
	case v.and(valueMask(uint32(b.y.lo))) != value{}:
		fail(m.Right.Position(), "comparison is always false: the last %d bits of the shifted value are 0", b.y.lo)
	default:
	}
}

func (b *binaryTerm) inverse(v value) value {
	switch b.op {
	case "^":
		return v.xor(b.y)
	case "<<":
		return v.shr(uint32(b.y.lo))
	default:
		return v.shl(uint32(b.y.lo))
	}
}

func (b *binaryTerm) moveTo(t term) {
	switch t := t.(type) {
	case *constTerm:
		t.v = b.inverse(t.v)
	case *rangeTerm:
		t.from, t.to = b.inverse(t.from), b.inverse(t.to)
	}
}
