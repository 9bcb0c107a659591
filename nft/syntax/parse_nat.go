package syntax

import "slices"

// nat parses dnat, snat, masquerade and redirect.
func (p *parser) nat() Stmt {
	n := &NAT{Pos: p.tok.Pos, Kind: p.tok.Text}
	p.advance()
	switch n.Kind {
	case "masquerade", "redirect":
		if p.acceptIdent("to") {
			if n.Kind == "masquerade" {
				p.expectPunct(":")
			} else {
				p.acceptPunct(":")
			}
			n.Port = p.value()
		}
		if p.natFlagAhead() {
			p.natFlags(n)
		}
	default:
		p.natTarget(n)
		// Of several groups of flags nft takes the last.
		for p.natFlagAhead() && p.err == nil {
			p.natFlags(n)
		}
	}
	return n
}

// natFlagAhead reports whether the current token is a flag of NAT.
func (p *parser) natFlagAhead() bool {
	return p.isIdent("random") || p.isIdent("fully-random") || p.isIdent("persistent")
}

// natFlags parses "random,persistent" in place of the flags that n has.
func (p *parser) natFlags(n *NAT) {
	n.Flags = n.Flags[:0]
	for {
		if !p.natFlagAhead() {
			p.unexpected("random, fully-random or persistent")
			return
		}
		n.Flags = append(n.Flags, p.tok.Text)
		p.advance()
		if !p.acceptPunct(",") {
			break
		}
	}
	slices.Sort(n.Flags)
	n.Flags = slices.Compact(n.Flags)
}

// natTarget parses "[ip|ip6] [addr . port|interval|prefix] [to] [ADDR][:PORT]".
func (p *parser) natTarget(n *NAT) {
	if (p.isIdent("ip") || p.isIdent("ip6")) && p.next.Kind == Ident {
		switch p.next.Text {
		case "to", "addr", "interval", "prefix":
			n.Family = p.expectIdent("a family")
		}
	}
	next := func(word string) bool { return p.next.Kind == Ident && p.next.Text == word }
	switch {
	case n.Family != "" && p.acceptIdent("addr"):
		p.expectPunct(".")
		p.oneOf("port")
		p.oneOf("to")
		n.AddrPort = true
		n.Addr = p.value()
		return
	case p.isIdent("prefix") && next("to"):
		p.advance()
		p.advance()
		n.Prefix = true
		n.Addr = p.value()
		return
	case p.isIdent("interval") && next("to"):
		// The older way to say that a map gives ranges, which nft finds out.
		p.advance()
		p.advance()
		n.Addr = p.value()
		return
	case n.Family != "":
		p.oneOf("to")
		if p.isPunct(":") {
			p.unexpected("an address: a port alone goes without " + n.Family)
		}
	default:
		p.acceptIdent("to")
	}
	if !p.isPunct(":") {
		n.Addr = p.value()
	}
	if p.acceptPunct(":") {
		n.Port = p.value()
	}
}
