package compile

import (
	"slices"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Only the kernel knows the meaning of numeric security marks.
func checkSecmark(m *syntax.Match, left term) {
	if t, ok := left.(*keyTerm); ok && t.key.Name == "secmark" {
		fail(m.Right.Position(), "%s cannot be compared with a constant", describe(m.Left))
	}
}

func checkAssigned(s *syntax.Assign) {
	switch target := s.Target.(type) {
	case *syntax.Meta:
		if _, ok := s.Value.(*syntax.CT); target.Key == "secmark" && !ok {
			fail(s.Value.Position(), "meta secmark takes ct secmark or the name of a secmark object")
		}
	case *syntax.CT:
		if c, ok := s.Value.(*syntax.Const); target.Key == "secmark" && ok {
			fail(c.Pos, "ct secmark cannot be set to a constant: write ct secmark set meta secmark")
		}
		if target.Key == "event" {
			walk(s.Value, checkEvent)
		}
	}
	walk(s.Value, func(x syntax.Expr) {
		switch x.(type) {
		case *syntax.FIB, *syntax.IPsec:
			fail(x.Position(), "%s can be matched, not assigned", describe(x))
		}
	})
}

// checkEvent rejects unquoted event names that have another meaning in nft's grammar.
func checkEvent(x syntax.Expr) {
	if c, ok := x.(*syntax.Const); ok && !c.Quoted && slices.Contains([]string{"helper", "mark", "secmark"}, c.Text) {
		fail(c.Pos, "%s is a word of the language: put the event into double quotes", c.Text)
	}
}

func walk(x syntax.Expr, f func(syntax.Expr)) {
	f(x)
	switch x := x.(type) {
	case *syntax.Concat:
		for _, p := range x.Parts {
			walk(p, f)
		}
	case *syntax.List:
		for _, item := range x.Items {
			walk(item, f)
		}
	case *syntax.Binary:
		walk(x.X, f)
		walk(x.Y, f)
	case *syntax.Map:
		walk(x.Key, f)
	}
}

// The result of a shift is an integer in comparisons, but keeps the operand's type in assignments.
func sourceType(t term) *datatype.Type {
	for {
		switch x := t.(type) {
		case *binaryTerm:
			t = x.x
		case *swapTerm:
			t = x.x
		default:
			return t.info().typ
		}
	}
}
