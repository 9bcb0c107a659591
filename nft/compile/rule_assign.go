package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// checkSecmark refuses to compare a security mark with a number: numbers are
// the kernel's own and mean nothing outside of it.
func checkSecmark(m *syntax.Match, left term) error {
	name := ""
	switch t := left.(type) {
	case *metaTerm:
		name = t.key.Name
	case *ctTerm:
		name = t.key.Name
	}
	if name != "secmark" {
		return nil
	}
	return syntax.ErrorAt(m.Right.Position(), "%s cannot be compared with a constant", describe(m.Left))
}

// checkAssigned refuses the values that nft's grammar has no place for in an
// assignment to meta or ct.
func checkAssigned(s *syntax.Assign) error {
	switch target := s.Target.(type) {
	case *syntax.Meta:
		if _, ok := s.Value.(*syntax.CT); target.Key == "secmark" && !ok {
			return syntax.ErrorAt(s.Value.Position(), "meta secmark takes ct secmark or the name of a secmark object")
		}
	case *syntax.CT:
		if c, ok := s.Value.(*syntax.Const); target.Key == "secmark" && ok {
			return syntax.ErrorAt(c.Pos, "ct secmark cannot be set to a constant: write ct secmark set meta secmark")
		}
		if target.Key == "event" {
			if err := checkEvents(s.Value); err != nil {
				return err
			}
		}
	}
	return checkAssignable(s.Value)
}

// checkEvents refuses the names of events that are words of nft's grammar and
// mean something else there.
func checkEvents(x syntax.Expr) error {
	switch x := x.(type) {
	case *syntax.Const:
		switch x.Text {
		case "helper", "mark", "secmark":
			if !x.Quoted {
				return syntax.ErrorAt(x.Pos, "%s is a word of the language: put the event into double quotes", x.Text)
			}
		}
	case *syntax.List:
		for _, item := range x.Items {
			if err := checkEvents(item); err != nil {
				return err
			}
		}
	case *syntax.Binary:
		if err := checkEvents(x.X); err != nil {
			return err
		}
		return checkEvents(x.Y)
	}
	return nil
}

// checkAssignable refuses selectors that can be matched but not assigned.
func checkAssignable(x syntax.Expr) error {
	switch x := x.(type) {
	case *syntax.FIB, *syntax.IPsec:
		return syntax.ErrorAt(x.Position(), "%s can be matched, not assigned", describe(x))
	case *syntax.Map:
		return checkAssignable(x.Key)
	case *syntax.Binary:
		return checkAssignable(x.X)
	case *syntax.Concat:
		for _, p := range x.Parts {
			if err := checkAssignable(p); err != nil {
				return err
			}
		}
	}
	return nil
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
