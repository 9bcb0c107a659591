package syntax

// ResetOption removes an option from a TCP header: "reset tcp option timestamp".
type ResetOption struct {
	Pos
	Option *Exthdr
}

var tcpOptionFields = []string{"length", "size", "count", "left", "right", "tsval", "tsecr", "subtype"}

func (p *parser) reset() Stmt {
	s := &ResetOption{Pos: p.begin()}
	s.Option = &Exthdr{Pos: p.Tok.Pos, Kind: ExthdrTCP}
	p.OneOf("tcp")
	p.OneOf("option")
	p.optionName(s.Option)
	if p.Tok.IsWord(tcpOptionFields...) {
		p.Fail(p.Tok, "unexpected %s: reset removes the whole option from the header", p.Tok)
	}
	return s
}

func (s *ResetOption) printStmt(p *printer) {
	p.str("reset ")
	s.Option.printExpr(p)
}
