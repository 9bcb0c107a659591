package syntax

// Notrack keeps the packet out of conntrack.
type Notrack struct{ Pos }

func (p *parser) notrack() Stmt {
	s := &Notrack{p.Tok.Pos}
	p.Advance()
	return s
}

func (s *Notrack) printStmt(p *printer) { p.str("notrack") }
