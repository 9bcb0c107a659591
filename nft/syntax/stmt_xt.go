package syntax

// XT is a match or target of iptables in a rule of iptables-nft. nft(8) can list it, but not load
// it.
type XT struct {
	Pos
	// Kind is match or target; Name is the extension's name, such as conntrack.
	Kind, Name string
}

func (p *parser) xt() Stmt {
	p.Fail(p.Tok, "xt statements are extensions of iptables, which nft(8) can list but not load: write the rule in nft's own words")
	return &XT{}
}

func (s *XT) printStmt(p *printer) {
	p.str("xt ", s.Kind, " ")
	p.quote(s.Name)
}
