package syntax

// ConnLimit matches up to Count connections, or above with Over: "ct count over 10".
type ConnLimit struct {
	Pos
	Over  bool
	Count uint32
}

func (p *parser) ctCount() Stmt {
	c := &ConnLimit{Pos: p.begin()}
	p.Advance()
	c.Over = p.AcceptIdent("over")
	c.Count = p.uint32("a number of connections")
	return c
}

func (c *ConnLimit) printStmt(p *printer) {
	p.str("ct count ")
	p.over(c.Over)
	p.num(uint64(c.Count))
}
