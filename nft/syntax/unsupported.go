package syntax

// otherStmt fails at a statement that nft(8) has and weft has not: named, so that an
// author does not look for a slip in what is right.
func (p *parser) otherStmt() {
	if p.isIdent("xt") {
		p.fail(p.tok.Pos, "xt statements are extensions of iptables, which nft(8) can list but not load: write the rule in nft's own words")
	}
}
