package syntax

// TProxy passes the packet to a local socket.
type TProxy struct {
	Pos
	Family string
	// nil if not given
	Addr, Port Expr
}

func (p *parser) tproxy() Stmt {
	t := &TProxy{Pos: p.begin()}
	t.Family = p.family()
	p.OneOf("to")
	t.Addr, t.Port = p.addrPort()
	return t
}

func (t *TProxy) printStmt(p *printer) {
	p.words("tproxy", t.Family, "to ")
	p.addrPort(t.Addr, t.Port)
}
