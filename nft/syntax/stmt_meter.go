package syntax

// Meter runs a statement per key: "meter seen { ip saddr limit rate 5/second }".
type Meter struct {
	Pos
	Name string
	Size uint32
	// key, its timeout, and one statement
	Elem *Elem
}

func (p *parser) meter() Stmt {
	m := &Meter{Pos: p.begin()}
	m.Name = p.ExpectIdent("the name of a meter")
	if p.AcceptIdent("size") {
		m.Size = p.uint32("a number of keys")
	}
	m.Elem = p.dynamicElem(func(e *Elem) {
		if s := p.stateful(); s != nil {
			e.Stmts = []Stmt{s}
		} else {
			p.Unexpected("counter, limit, quota or ct count")
		}
	})
	return m
}

func (m *Meter) printStmt(p *printer) {
	p.str("meter ", m.Name)
	p.optional("size", m.Size)
	p.dynamicElem(m.Elem)
}
