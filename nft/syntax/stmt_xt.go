package syntax

// XT is a match or target in a rule of iptables-nft, which nft(8) can list but not load.
type XT struct {
	Pos
	// Kind: match or target; Name: the extension's, such as conntrack
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
