package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// checkSecmark refuses to compare a security mark with a number: numbers are
// the kernel's own and mean nothing outside of it.
func checkSecmark(m *syntax.Match, left term) {
	name := ""
	switch t := left.(type) {
	case *metaTerm:
		name = t.key.Name
	case *ctTerm:
		name = t.key.Name
	}
	if name != "secmark" {
		return
	}
	fail(m.Right.Position(), "%s cannot be compared with a constant", describe(m.Left))
}

// checkAssigned refuses the values that nft's grammar has no place for in an
// assignment to meta or ct.
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
			checkEvents(s.Value)
		}
	}
	checkAssignable(s.Value)
}

// checkEvents refuses the names of events that are words of nft's grammar and
// mean something else there.
func checkEvents(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.Const:
		switch x.Text {
		case "helper", "mark", "secmark":
			if !x.Quoted {
				fail(x.Pos, "%s is a word of the language: put the event into double quotes", x.Text)
			}
		}
	case *syntax.List:
		for _, item := range x.Items {
			checkEvents(item)
		}
	case *syntax.Binary:
		checkEvents(x.X)
		checkEvents(x.Y)
		return
	}
}

// checkAssignable refuses selectors that can be matched but not assigned.
func checkAssignable(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.FIB, *syntax.IPsec:
		fail(x.Position(), "%s can be matched, not assigned", describe(x))
	case *syntax.Map:
		checkAssignable(x.Key)
		return
	case *syntax.Binary:
		checkAssignable(x.X)
		return
	case *syntax.Concat:
		for _, p := range x.Parts {
			checkAssignable(p)
		}
	}
}

// sourceType returns the type of what operations on bits are made with: a
// shift has the type of integers where it is compared, but assigned it keeps
// its own.
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
