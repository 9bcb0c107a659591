package syntax

import "slices"

// precedence gives the binding of the binary operators, as in nft's grammar;
// 0 means that it is none.
func precedence(op string) int {
	switch op {
	case "|":
		return 1
	case "^":
		return 2
	case "&":
		return 3
	case "<<", ">>":
		return 4
	default:
		return 0
	}
}

// binaryOp returns the binary operator that the current token is, or "".
func (p *parser) binaryOp() string {
	switch p.tok.Kind {
	case Punct:
		if precedence(p.tok.Text) > 0 {
			return p.tok.Text
		}
	case Ident:
		switch p.tok.Text {
		case "and":
			return "&"
		case "or":
			return "|"
		case "xor":
			return "^"
		case "lshift":
			return "<<"
		case "rshift":
			return ">>"
		}
	}
	return ""
}

// selector parses the left side of a statement: selectors joined by " . ",
// with operations on bits. Constants can stand in it too.
func (p *parser) selector() Expr { return p.concat(p.selectorPart) }

// selectorPart is one part of a concatenation on the left side.
func (p *parser) selectorPart() Expr { return p.binary(p.selectorPrimary, 1) }

// value parses what is assigned, or where a packet is translated to: like a
// selector, with ranges and prefixes.
func (p *parser) value() Expr {
	p.assigned = true
	x := p.operand()
	p.assigned = false
	return x
}

// operand parses what a dynamic statement puts into a set.
func (p *parser) operand() Expr {
	return p.mapped(p.concat(func() Expr { return p.span(p.selectorPart) }))
}

// constant parses the right side of a comparison: constants only.
func (p *parser) constant() Expr {
	return p.concat(func() Expr { return p.span(p.constantPart) })
}

// constantPart is one part of the right side, with operations on bits.
func (p *parser) constantPart() Expr { return p.binary(p.constantPrimary, 1) }

// concat parses parts joined by ".".
func (p *parser) concat(part func() Expr) Expr {
	x := part()
	if !p.isPunct(".") || p.err != nil {
		return x
	}
	c := &Concat{Pos: x.Position(), Parts: []Expr{x}}
	for p.acceptPunct(".") {
		c.Parts = append(c.Parts, part())
	}
	return c
}

// span parses a range or prefix around single values.
func (p *parser) span(part func() Expr) Expr {
	x := part()
	switch {
	case p.isPunct("-"):
		p.advance()
		return &Range{Pos: x.Position(), From: x, To: part()}
	case p.isPunct("/") && p.next.Kind == Number:
		p.advance()
		return &Prefix{Pos: x.Position(), X: x, Len: int(p.number("prefix length", 16))}
	default:
		return x
	}
}

// binary parses operations that bind at least as tight as level.
func (p *parser) binary(primary func() Expr, level int) Expr {
	x := primary()
	for p.err == nil {
		op := p.binaryOp()
		if op == "" || precedence(op) < level {
			return x
		}
		p.advance()
		x = &Binary{Pos: x.Position(), Op: op, X: x, Y: p.binary(p.constantPrimary, precedence(op)+1)}
		// Left-deep chains recurse in every later walk over the tree.
		p.depth++
		defer func() { p.depth-- }()
		if p.depth > MaxDepth {
			p.fail(p.tok.Pos, "nested deeper than %d levels", MaxDepth)
		}
	}
	return x
}

// constantPrimary parses one constant or a parenthesis of constants.
func (p *parser) constantPrimary() Expr {
	pos := p.tok.Pos
	switch {
	case p.isPunct("("):
		p.open()
		x := p.constantPart()
		p.close(")")
		return x
	case p.isPunct("["):
		p.advance()
		x := p.addr()
		p.expectPunct("]")
		return x
	case p.tok.Kind == Ident, p.tok.Kind == Number, p.tok.Kind == Addr, p.tok.Kind == Word, p.tok.Kind == String:
		c := &Const{Pos: pos, Text: p.tok.Text, Quoted: p.tok.Kind == String}
		p.advance()
		return c
	default:
		p.unexpected("a value")
		return &Const{Pos: pos}
	}
}

// addr parses the address in brackets.
func (p *parser) addr() Expr {
	c := &Const{Pos: p.tok.Pos, Text: p.tok.Text}
	if p.tok.Kind != Addr {
		p.unexpected("an IPv6 address")
	}
	p.advance()
	return c
}

// unqualified are the meta keys that need no "meta" in front.
var unqualified = []string{
	"mark", "iif", "iifname", "iiftype", "oif", "oifname", "oiftype", "skuid", "skgid", "nftrace", "rtclassid",
	"ibriport", "ibrname", "obriport", "obrname", "pkttype", "cpu", "iifgroup", "oifgroup", "cgroup", "ipsec",
	"time", "day", "hour",
}

// selectorPrimary parses one selector, constant or parenthesis.
func (p *parser) selectorPrimary() Expr {
	if x := p.extension(); x != nil {
		return x
	}
	pos, text := p.tok.Pos, p.tok.Text
	if p.tok.Kind == Punct && text == "(" {
		p.open()
		x := p.selectorPart()
		p.close(")")
		return x
	}
	if p.tok.Kind == Punct && text == "@" {
		return p.rawPayload()
	}
	if p.tok.Kind != Ident {
		return p.constantPrimary()
	}
	if x := p.hostSelector(); x != nil {
		return x
	}
	switch {
	case text == "meta":
		p.advance()
		x := &Meta{Pos: pos, KeyPos: p.tok.Pos}
		x.Key = p.expectIdent("a meta key")
		return x
	case text == "ct":
		return p.ct()
	case text == "fib":
		return p.fib()
	case text == "numgen":
		return p.numgen()
	case slices.Contains(unqualified, text):
		p.advance()
		return &Meta{Pos: pos, KeyPos: pos, Key: text}
	case slices.Contains(headers, text) && !p.isConstantHeader():
		return p.payload()
	default:
		return p.constantPrimary()
	}
}

// ct parses "ct [original|reply] [ip|ip6] KEY".
func (p *parser) ct() Expr {
	c := &CT{Pos: p.tok.Pos}
	p.advance()
	if p.isIdent("original") || p.isIdent("reply") {
		c.Dir = p.expectIdent("a direction")
		if p.isIdent("ip") || p.isIdent("ip6") {
			c.L3 = p.expectIdent("a protocol")
		}
	}
	c.KeyPos = p.tok.Pos
	c.Key = p.expectIdent("a ct key")
	return c
}

// fib parses "fib saddr . iif oif".
func (p *parser) fib() Expr {
	f := &FIB{Pos: p.tok.Pos}
	p.advance()
	for {
		f.Inputs = append(f.Inputs, p.oneOf("saddr", "daddr", "mark", "iif", "oif"))
		if !p.acceptPunct(".") {
			break
		}
	}
	f.Result = p.oneOf("oifname", "oif", "type")
	return f
}

// numgen parses "numgen random mod 3 offset 1".
func (p *parser) numgen() Expr {
	n := &Numgen{Pos: p.tok.Pos}
	p.advance()
	n.Mode = p.oneOf("random", "inc")
	p.oneOf("mod")
	n.Mod = uint32(p.number("a modulus", 32))
	if p.acceptIdent("offset") {
		n.Offset = uint32(p.number("an offset", 32))
	}
	return n
}

// mapped parses the "map ..." that may follow a value.
func (p *parser) mapped(key Expr) Expr {
	if !p.isIdent("map") {
		return key
	}
	p.advance()
	return &Map{Pos: key.Position(), Key: key, Table: p.table()}
}

// table parses "{ ... }" or "@name".
func (p *parser) table() Expr {
	switch {
	case p.isPunct("{"):
		return p.set()
	case p.isPunct("@"):
		return p.setRef()
	default:
		p.unexpected(`"{" or "@name"`)
		return &SetRef{Pos: p.tok.Pos}
	}
}

// setRef parses "@name".
func (p *parser) setRef() *SetRef {
	r := &SetRef{Pos: p.tok.Pos}
	p.expectPunct("@")
	r.Name = p.expectIdent("the name of a set")
	return r
}

// typeOfList parses selectors joined by ".".
func (p *parser) typeOfList() []Expr {
	x := p.selector()
	if c, ok := x.(*Concat); ok {
		return c.Parts
	}
	return []Expr{x}
}
