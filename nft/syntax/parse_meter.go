package syntax

// Meter keeps a statement for each key: "meter seen { ip saddr limit rate 5/second }".
// The set that it fills belongs to the rule.
type Meter struct {
	Pos
	Name string
	// Size is 0 when it was not given.
	Size uint32
	// Elem has the key, its timeout, and one statement.
	Elem *Elem
}

func (*Meter) stmt() {}

// meter parses "meter NAME [size N] { KEY [timeout T] STATEMENT }".
func (p *parser) meter() Stmt {
	m := &Meter{Pos: p.tok.Pos}
	p.advance()
	m.Name = p.expectIdent("the name of a meter")
	if p.acceptIdent("size") {
		m.Size = uint32(p.number("a number of keys", 32))
	}
	m.Elem = &Elem{Pos: p.tok.Pos}
	if !p.isPunct("{") {
		p.unexpected(`"{"`)
		return m
	}
	p.open()
	m.Elem.Pos = p.tok.Pos
	m.Elem.Key = p.operand()
	p.elementOptions(m.Elem)
	if s := p.stateful(); s != nil {
		m.Elem.Stmts = []Stmt{s}
	} else {
		p.unexpected("counter, limit, quota or ct count")
	}
	p.close("}")
	return m
}

// meter writes a meter.
func (p *printer) meter(m *Meter) {
	p.str("meter ")
	p.str(m.Name)
	if m.Size != 0 {
		p.str(" size ")
		p.num(uint64(m.Size))
	}
	p.str(" { ")
	p.elem(m.Elem, true)
	p.str(" }")
}
