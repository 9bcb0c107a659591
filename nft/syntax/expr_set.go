package syntax

import (
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
)

// SetRef names a set or map: "@blocked".
type SetRef struct {
	Pos
	Name string
}

// Set is an anonymous set or map: "{ 22, 80 }", "{ 80 : accept }".
type Set struct {
	Pos
	Elems []*Elem
}

// Elem is an element of an anonymous set or of a dynamic statement.
type Elem struct {
	Pos
	// a constant or Wildcard; any expression in dynamic statements
	Key Expr
	// Expires is the time left, 0 for the full timeout.
	Timeout, Expires time.Duration
	Comment          string
	Stmts            []Stmt
	// a *Verdict in verdict maps, nil in sets
	Value Expr
}

// Wildcard is the catch-all element "*".
type Wildcard struct{ Pos }

// Map is a lookup: "tcp dport map @ports". Table is a *Set or *SetRef.
type Map struct {
	Pos
	Key   Expr
	Table Expr
}

func (p *parser) mapped(key Expr) Expr {
	if !p.AcceptIdent("map") {
		return key
	}
	return &Map{Pos: key.Position(), Key: key, Table: p.table()}
}

func (p *parser) table() Expr {
	switch {
	case p.IsPunct("{"):
		return p.set()
	case p.IsPunct("@"):
		return p.setRef()
	default:
		p.Unexpected(`"{" or "@name"`)
		return &SetRef{Pos: p.Tok.Pos}
	}
}

func (p *parser) setRef() *SetRef {
	r := &SetRef{Pos: p.Tok.Pos}
	p.ExpectPunct("@")
	r.Name = p.ExpectIdent("the name of a set")
	return r
}

// A comma may follow the last element.
func (p *parser) set() *Set {
	s := &Set{Pos: p.Tok.Pos}
	p.open()
	var last []*Elem
	for p.err == nil && !p.IsPunct("}") {
		last = p.member(s, last)
		if !p.AcceptPunct(",") {
			break
		}
	}
	p.close("}")
	s.Elems = append(s.Elems, last...)
	if len(s.Elems) == 0 {
		p.fail(s.Pos, "set is empty")
	}
	return s
}

// member flattens a nested set. If its elements have a common value, nft puts them after all
// others: member appends them to last.
func (p *parser) member(s *Set, last []*Elem) []*Elem {
	if !p.IsPunct("{") {
		s.Elems = append(s.Elems, p.element())
		return last
	}
	inner := p.set()
	if !p.AcceptPunct(":") {
		s.Elems = append(s.Elems, inner.Elems...)
		return last
	}
	value := p.elementData()
	for _, e := range inner.Elems {
		if e.Value != nil {
			p.fail(e.Value.Position(), "element has two values: its own, and the value of the set that contains it")
		}
		e.Value = value
	}
	return append(last, inner.Elems...)
}

func (p *parser) element() *Elem {
	e := &Elem{Pos: p.Tok.Pos}
	if p.AcceptPunct("*") {
		e.Key = &Wildcard{e.Pos}
	} else {
		e.Key = p.constant()
	}
	e.Stmts = p.statefulList()
	for _, s := range e.Stmts {
		if _, ok := s.(*Quota); ok {
			p.fail(s.Position(), "quota is not possible in an element of an anonymous set: want counter, limit or ct count")
		}
	}
	p.elementOptions(e)
	if p.AcceptPunct(":") {
		e.Value = p.elementData()
	}
	return e
}

func (p *parser) elementData() Expr {
	if isVerdict(p.Tok) {
		return p.verdict()
	}
	return p.constant()
}

func (p *parser) elementOptions(e *Elem) {
	for p.err == nil {
		at := p.Tok
		switch {
		case p.AcceptIdent("timeout"):
			e.Timeout = p.ExpectTime()
		case p.AcceptIdent("expires"):
			e.Expires = p.ExpectTime()
		case p.AcceptIdent("comment"):
			if e.Comment != "" {
				p.Fail(at, "comment is given twice")
			}
			e.Comment = nft.ParseComment(p.text("a comment in double quotes"))
		default:
			return
		}
	}
}

func (x *SetRef) printExpr(p *printer)   { p.str("@", x.Name) }
func (x *Wildcard) printExpr(p *printer) { p.str("*") }

func (x *Map) printExpr(p *printer) {
	x.Key.printExpr(p)
	p.str(" map ")
	x.Table.printExpr(p)
}

func (x *Set) printExpr(p *printer) {
	p.str("{ ")
	for i, e := range x.Elems {
		if i > 0 {
			p.str(", ")
		}
		p.elem(e, false)
	}
	p.str(" }")
}

// elem prints the options of dynamic statements before the statements.
func (p *printer) elem(e *Elem, dynamic bool) {
	e.Key.printExpr(p)
	if !dynamic {
		p.stmts(e.Stmts)
	}
	if e.Timeout != 0 {
		p.str(" timeout ", datatype.FormatDuration(e.Timeout))
	}
	if e.Expires != 0 {
		p.str(" expires ", datatype.FormatDuration(e.Expires))
	}
	if e.Comment != "" {
		p.str(" comment ")
		p.quote(nft.CommentText(e.Comment))
	}
	if dynamic {
		p.stmts(e.Stmts)
	}
	if e.Value != nil {
		p.str(" : ")
		e.Value.printExpr(p)
	}
}

func (p *printer) stmts(list []Stmt) {
	for _, s := range list {
		p.str(" ")
		s.printStmt(p)
	}
}
