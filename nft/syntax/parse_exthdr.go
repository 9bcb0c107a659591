package syntax

import "slices"

// extensionHeaders are the IPv6 extension headers by their words; rt is one of
// them when a field of it follows.
var extensionHeaders = []string{"hbh", "rt", "rt0", "rt2", "srh", "frag", "dst", "mh"}

// routingFields are the fields that make "rt" the routing header.
var routingFields = []string{"nexthdr", "hdrlength", "type", "seg-left"}

// tcpOptionFields are the fields of TCP options.
var tcpOptionFields = []string{"length", "size", "count", "left", "right", "tsval", "tsecr", "subtype"}

// extension parses an expression on an extension of a header, or on the route;
// it returns nil, without an error, when there is none.
func (p *parser) extension() Expr {
	if p.tok.Kind != Ident || p.next.Kind != Ident {
		return nil
	}
	switch text, next := p.tok.Text, p.next.Text; {
	case text == "ip" && next == "option":
		return p.option(ExthdrIPv4)
	case text == "tcp" && next == "option":
		return p.option(ExthdrTCP)
	case text == "sctp" && next == "chunk":
		return p.option(ExthdrSCTP)
	case text == "rt" && !slices.Contains(routingFields, next):
		return p.rt()
	case text == "exthdr", slices.Contains(extensionHeaders, text):
		return p.extensionHeader()
	default:
		return nil
	}
}

// extensionHeader parses "exthdr frag", "frag id", "rt0 addr[1]".
func (p *parser) extensionHeader() Expr {
	if p.assigned {
		p.fail(p.tok.Pos, "%s %s cannot be assigned: IPv6 extension headers can be matched and put into sets only", p.tok.Text, p.next.Text)
	}
	x := &Exthdr{Pos: p.tok.Pos}
	if p.acceptIdent("exthdr") {
		x.NamePos = p.tok.Pos
		x.Name = p.expectIdent("the name of an extension header")
		return x
	}
	x.Name, x.NamePos = p.tok.Text, p.tok.Pos
	p.advance()
	x.FieldPos = p.tok.Pos
	x.Field = p.expectIdent("a field of the header")
	if x.Name == "rt0" && x.Field == "addr" || x.Name == "srh" && x.Field == "sid" {
		p.expectPunct("[")
		at := p.tok.Pos
		if x.Index = uint32(p.number("a number from 1", 32)); x.Index == 0 {
			p.fail(at, "unexpected \"0\": want a number from 1")
		}
		p.expectPunct("]")
	}
	return x
}

// option parses "tcp option NAME [FIELD]" and its like.
func (p *parser) option(kind ExthdrKind) Expr {
	x := &Exthdr{Pos: p.tok.Pos, Kind: kind}
	p.advance()
	p.advance()
	if kind == ExthdrTCP && p.acceptPunct("@") {
		x.Raw = true
		p.optionName(x)
		p.expectPunct(",")
		x.Offset = uint32(p.number("an offset in bits", 32))
		p.expectPunct(",")
		x.Length = uint32(p.number("a length in bits", 32))
		return x
	}
	p.optionName(x)
	if p.tok.Kind == Ident && !followsValue(p.tok.Text) {
		x.Field, x.FieldPos = p.tok.Text, p.tok.Pos
		p.advance()
	}
	return x
}

// optionName parses the name of an option or chunk, or the number of a TCP
// option.
func (p *parser) optionName(x *Exthdr) {
	x.NamePos = p.tok.Pos
	if x.Kind != ExthdrTCP || p.tok.Kind != Number {
		x.Name = p.expectIdent("the name of an " + x.Kind.String())
		return
	}
	x.Name = p.tok.Text
	p.number("option", 8)
}

// followsValue reports whether a word stands behind an option, rather than
// names a field of it.
func followsValue(word string) bool {
	switch word {
	case "exists", "missing", "eq", "ne", "lt", "gt", "le", "ge", "not", "and", "or", "xor", "lshift", "rshift",
		"set", "map", "vmap", "timeout", "expires", "comment", "counter", "limit", "quota", "ct", "last":
		return true
	default:
		return false
	}
}

// resetOption parses "reset tcp option NAME".
func (p *parser) resetOption() Stmt {
	s := &ResetOption{Pos: p.tok.Pos}
	p.advance()
	s.Option = &Exthdr{Pos: p.tok.Pos, Kind: ExthdrTCP}
	p.oneOf("tcp")
	p.oneOf("option")
	p.optionName(s.Option)
	if p.tok.Kind == Ident && slices.Contains(tcpOptionFields, p.tok.Text) {
		p.fail(p.tok.Pos, "unexpected %s: reset takes the whole option out of the header", p.tok)
	}
	return s
}
