package syntax

// Dynamic changes a named set: "update @seen { ip saddr timeout 5s }".
type Dynamic struct {
	Pos
	Op   string
	Set  *SetRef
	Elem *Elem
}

func (p *parser) dynamic() Stmt {
	d := &Dynamic{Pos: p.Tok.Pos, Op: p.Tok.Text}
	p.Advance()
	d.Set = p.setRef()
	d.Elem = p.dynamicElem(func(e *Elem) {
		e.Stmts = p.statefulList()
		if p.AcceptPunct(":") {
			e.Value = p.operand()
			if p.Tok.IsWord("timeout", "expires", "comment") {
				p.Fail(p.Tok, "%s is possible only after the key", p.Tok.Text)
			}
		}
	})
	return d
}

// rest parses the end
func (p *parser) dynamicElem(rest func(*Elem)) *Elem {
	e := &Elem{Pos: p.Tok.Pos}
	if !p.IsPunct("{") {
		p.Unexpected(`"{"`)
		return e
	}
	p.open()
	e.Pos = p.Tok.Pos
	e.Key = p.operand()
	p.elementOptions(e)
	rest(e)
	p.close("}")
	return e
}

// oldDynamic parses the older form "set add|update|delete KEY [OPTIONS] @SET".
func (p *parser) oldDynamic() Stmt {
	d := &Dynamic{Pos: p.begin()}
	d.Op = p.OneOf("add", "update", "delete")
	d.Elem = &Elem{Pos: p.Tok.Pos}
	d.Elem.Key = p.operand()
	p.elementOptions(d.Elem)
	d.Set = p.setRef()
	return d
}

func (d *Dynamic) printStmt(p *printer) {
	p.str(d.Op, " ")
	d.Set.printExpr(p)
	p.dynamicElem(d.Elem)
}

func (p *printer) dynamicElem(e *Elem) {
	p.str(" { ")
	p.elem(e, true)
	p.str(" }")
}
