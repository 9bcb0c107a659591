package syntax

import "slices"

// hostSelector parses the selectors that ask the host about a packet, not the
// packet itself. It returns nil, without an error, when there is none.
func (p *parser) hostSelector() Expr {
	if p.tok.Kind != Ident {
		return nil
	}
	switch p.tok.Text {
	case "socket":
		return p.socket()
	case "osf":
		return p.osf()
	case "jhash", "symhash":
		return p.hash()
	case "ipsec":
		// Without a direction this is the meta key.
		if p.next.Kind == Ident && (p.next.Text == "in" || p.next.Text == "out") {
			return p.ipsec()
		}
	}
	return nil
}

// socket parses "socket KEY [level N]".
func (p *parser) socket() Expr {
	x := &Socket{Pos: p.tok.Pos}
	p.advance()
	x.KeyPos = p.tok.Pos
	x.Key = p.oneOf("transparent", "mark", "wildcard", "cgroupv2")
	if x.Key == "cgroupv2" {
		p.oneOf("level")
		x.Level = uint32(p.number("a level", 32))
	}
	return x
}

// osf parses "osf [ttl loose|skip] name|version".
func (p *parser) osf() Expr {
	x := &OSF{Pos: p.tok.Pos}
	p.advance()
	if p.acceptIdent("ttl") {
		x.TTL = p.oneOf("loose", "skip")
	}
	x.Key = p.oneOf("name", "version")
	return x
}

// ipsec parses "ipsec in|out [spnum N] [ip|ip6] KEY".
func (p *parser) ipsec() Expr {
	x := &IPsec{Pos: p.tok.Pos}
	p.advance()
	x.Dir = p.oneOf("in", "out")
	if p.acceptIdent("spnum") {
		x.Spnum = uint32(p.number("a number of a state", 8))
	}
	if p.isIdent("ip") || p.isIdent("ip6") {
		x.L3 = p.expectIdent("a family")
		x.Key = p.oneOf("saddr", "daddr")
		return x
	}
	x.Key = p.oneOf("spi", "reqid", "ip", "ip6")
	return x
}

// hash parses "jhash EXPR mod N [seed N] [offset N]" and
// "symhash mod N [offset N]".
func (p *parser) hash() Expr {
	x := &Hash{Pos: p.tok.Pos}
	sym := p.isIdent("symhash")
	p.advance()
	if !sym {
		// A hash may be hashed, so that this is a way to nest.
		p.depth++
		if p.depth > MaxDepth {
			p.fail(p.tok.Pos, "nested deeper than %d levels", MaxDepth)
		}
		assigned := p.assigned
		p.assigned = false
		x.X = p.selector()
		p.assigned = assigned
		p.depth--
	}
	p.oneOf("mod")
	x.Mod = uint32(p.number("a modulus", 32))
	if !sym && p.acceptIdent("seed") {
		seed := uint32(p.number("a seed", 32))
		x.Seed = &seed
	}
	if p.acceptIdent("offset") {
		x.Offset = uint32(p.number("an offset", 32))
	}
	return x
}

// mask parses the mask of a flag comparison, which is a list of at least two.
func (p *parser) mask() Expr {
	x := p.flags()
	if _, ok := x.(*List); !ok {
		p.unexpected("a comma: a mask of one flag is written & FLAG == VALUE")
	}
	return x
}

// assignment parses what is assigned: a value, or a list of names of flags as
// in "ct event set new,related".
func (p *parser) assignment() Expr {
	x := p.value()
	c, ok := x.(*Const)
	if !ok || !p.isPunct(",") || c.Text != "" && isDigit(c.Text[0]) {
		return x
	}
	l := &List{Pos: c.Pos, Items: []Expr{c}}
	for p.acceptPunct(",") {
		if !slices.Contains([]Kind{Ident, String}, p.tok.Kind) {
			p.unexpected("a name")
		}
		l.Items = append(l.Items, p.constantPrimary())
	}
	return l
}
