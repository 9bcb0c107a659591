package syntax

import "time"

// ParseStateful parses the statements of a set's declaration or of an element,
// such as "counter limit rate 5/second". The error is an *Error.
func ParseStateful(text string) ([]Stmt, error) {
	p := newParser(text)
	p.checkLength()
	p.inline++
	list := p.statefulList()
	if p.err == nil && (p.tok.Kind != EOF || len(list) == 0) {
		p.unexpected("counter, limit, quota or ct count")
	}
	if p.err != nil {
		return nil, p.err
	}
	return list, nil
}

// PrintStmt returns a statement in canonical form.
func PrintStmt(s Stmt) string {
	var p printer
	p.stmt(s)
	return p.b.String()
}

// statefulList parses statements that keep a state, as long as there are any.
func (p *parser) statefulList() []Stmt {
	var list []Stmt
	for p.err == nil {
		s := p.stateful()
		if s == nil {
			break
		}
		list = append(list, s)
	}
	return list
}

// set parses an anonymous set or map. A comma may follow its last element.
func (p *parser) set() *Set {
	s := &Set{Pos: p.tok.Pos}
	p.open()
	var late []*Elem
	for p.err == nil && !p.isPunct("}") {
		late = p.member(s, late)
		if !p.acceptPunct(",") {
			break
		}
	}
	p.close("}")
	s.Elems = append(s.Elems, late...)
	if len(s.Elems) == 0 {
		p.fail(s.Pos, "set is empty")
	}
	return s
}

// member parses one member of a set and appends it. A set in a set, which is
// what a variable often is, stands for its elements; if they have a value in
// common, nft puts them behind all others, so they go to late.
func (p *parser) member(s *Set, late []*Elem) []*Elem {
	if !p.isPunct("{") {
		s.Elems = append(s.Elems, p.element())
		return late
	}
	inner := p.set()
	if !p.isPunct(":") {
		s.Elems = append(s.Elems, inner.Elems...)
		return late
	}
	p.advance()
	value := p.elementData()
	for _, e := range inner.Elems {
		if e.Value != nil {
			p.fail(e.Value.Position(), "element has two values: one of its own, and one of the set that it is in")
		}
		e.Value = value
	}
	return append(late, inner.Elems...)
}

// element parses an element of an anonymous set or map.
func (p *parser) element() *Elem {
	e := &Elem{Pos: p.tok.Pos}
	if p.isPunct("*") {
		e.Key = &Wildcard{p.tok.Pos}
		p.advance()
	} else {
		e.Key = p.constant()
	}
	e.Stmts = p.statefulList()
	for _, s := range e.Stmts {
		if _, ok := s.(*Quota); ok {
			p.fail(s.Position(), "quota is not possible in an element of braces: want counter, limit or ct count")
		}
	}
	p.elementOptions(e)
	if p.acceptPunct(":") {
		e.Value = p.elementData()
	}
	return e
}

// elementData parses what comes after the colon of an element.
func (p *parser) elementData() Expr {
	if v := p.verdict(); v != nil {
		return v
	}
	return p.constant()
}

// elementOptions parses the times and the comment of an element.
func (p *parser) elementOptions(e *Elem) {
	for p.err == nil && p.tok.Kind == Ident {
		switch p.tok.Text {
		case "timeout":
			p.advance()
			e.Timeout = p.elementTime()
		case "expires":
			p.advance()
			e.Expires = p.elementTime()
		case "comment":
			if e.Comment != "" {
				p.fail(p.tok.Pos, "comment is given twice")
			}
			p.advance()
			e.Comment = p.text("a comment")
		default:
			return
		}
	}
}

// elementTime parses a time.
func (p *parser) elementTime() time.Duration {
	d, ok := p.tok.duration()
	if !ok {
		p.unexpected("a time such as 5s")
		return 0
	}
	p.advance()
	return d
}

// dynamic parses "add|update|delete @set { KEY [options] [stmts] [: data] }".
func (p *parser) dynamic() Stmt {
	d := &Dynamic{Pos: p.tok.Pos, Op: p.tok.Text}
	p.advance()
	d.Set = p.setRef()
	d.Elem = &Elem{Pos: p.tok.Pos}
	if !p.isPunct("{") {
		p.unexpected(`"{"`)
		return d
	}
	p.open()
	e := d.Elem
	e.Pos = p.tok.Pos
	e.Key = p.operand()
	p.elementOptions(e)
	e.Stmts = p.statefulList()
	if p.acceptPunct(":") {
		e.Value = p.operand()
		if p.isIdent("timeout") || p.isIdent("expires") || p.isIdent("comment") {
			p.fail(p.tok.Pos, "%s is possible behind the key only", p.tok.Text)
		}
	}
	p.close("}")
	return d
}

// oldDynamic parses "set add|update|delete KEY [options] @set", the older way to
// write dynamic.
func (p *parser) oldDynamic() Stmt {
	d := &Dynamic{Pos: p.tok.Pos}
	p.advance()
	d.Op = p.oneOf("add", "update", "delete")
	d.Elem = &Elem{Pos: p.tok.Pos}
	d.Elem.Key = p.operand()
	p.elementOptions(d.Elem)
	d.Set = p.setRef()
	return d
}
