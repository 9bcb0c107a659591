package syntax

// rt parses "rt [ip|ip6] KEY".
func (p *parser) rt() Expr {
	x := &Rt{Pos: p.tok.Pos}
	p.advance()
	if p.isIdent("ip") || p.isIdent("ip6") {
		x.Family = p.expectIdent("a family")
	}
	x.KeyPos = p.tok.Pos
	x.Key = p.oneOf("classid", "nexthop", "mtu", "ipsec")
	return x
}
