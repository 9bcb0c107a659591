package syntax

// Meter keeps a statement for each key: "meter seen { ip saddr limit rate 5/second }". The
// set that it fills belongs to the rule.
type Meter struct {
	Pos
	Name string
	// Size is 0 if it was not given.
	Size uint32
	// Elem has the key, its timeout, and one statement.
	Elem *Elem
}

// meter parses "meter NAME [size N] { KEY [timeout T] STATEMENT }".
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
