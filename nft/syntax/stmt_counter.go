package syntax

// Counter counts packets and bytes, also as an object's body.
type Counter struct {
	Pos
	Packets, Bytes uint64
}

func (p *parser) counter() Stmt {
	c := &Counter{Pos: p.begin()}
	for p.err == nil {
		switch {
		case p.AcceptIdent("packets"):
			c.Packets = p.ExpectNumber("a number of packets", 64)
		case p.AcceptIdent("bytes"):
			c.Bytes = p.ExpectNumber("a number of bytes", 64)
		default:
			return c
		}
	}
	return c
}

func (c *Counter) printStmt(p *printer) {
	p.str("counter")
	if c.Packets != 0 || c.Bytes != 0 {
		p.str(" ")
		c.printBody(p)
	}
}

func (c *Counter) parseBody(p *parser) {
	c.Pos = p.Tok.Pos
	p.OneOf("packets")
	c.Packets = p.ExpectNumber("a number of packets", 64)
	p.OneOf("bytes")
	c.Bytes = p.ExpectNumber("a number of bytes", 64)
}

func (c *Counter) printBody(p *printer) {
	p.str("packets ")
	p.num(c.Packets)
	p.option("bytes", c.Bytes)
}
