package syntax

import "slices"

// stmt parses one statement.
func (p *parser) stmt() Stmt {
	pos := p.tok.Pos
	p.otherStmt()
	if p.tok.Kind == Ident {
		if v := p.verdict(); v != nil {
			return v
		}
		if s := p.stateful(); s != nil {
			return s
		}
		if s := p.divert(); s != nil {
			return s
		}
		if s := p.ctObject(); s != nil {
			return s
		}
		switch p.tok.Text {
		case "log":
			return p.log()
		case "reject":
			return p.reject()
		case "dnat", "snat", "masquerade", "redirect":
			return p.nat()
		case "reset":
			return p.resetOption()
		case "notrack":
			p.advance()
			return &Notrack{pos}
		case "add", "update", "delete":
			return p.dynamic()
		case "set":
			return p.oldDynamic()
		case "meter":
			return p.meter()
		}
	}
	x := p.selector()
	switch {
	case p.acceptIdent("vmap"):
		return &Vmap{Pos: pos, Key: x, Table: p.table()}
	case p.isIdent("set"):
		p.advance()
		return p.assign(pos, x)
	case p.isIdent("map"):
		return p.match(p.mapped(x))
	default:
		return p.match(x)
	}
}

// comparison returns the comparison operator that the current token is, or "".
func (p *parser) comparison() string {
	switch p.tok.Kind {
	case Punct:
		switch p.tok.Text {
		case "==", "!=", "<", ">", "<=", ">=", "!":
			return p.tok.Text
		}
	case Ident:
		switch p.tok.Text {
		case "eq":
			return "=="
		case "ne":
			return "!="
		case "lt":
			return "<"
		case "gt":
			return ">"
		case "le":
			return "<="
		case "ge":
			return ">="
		case "not":
			return "!"
		}
	}
	return ""
}

// match parses the rest of a comparison.
func (p *parser) match(left Expr) Stmt {
	m := &Match{Pos: left.Position(), Left: left, Op: p.comparison(), OpPos: p.tok.Pos}
	if m.Op != "" {
		p.advance()
	}
	if p.isPunct("{") || p.isPunct("@") {
		m.Right = p.table()
		return m
	}
	if p.tok.Kind == EOF && p.err == nil || p.tok.Kind == Newline || p.tok.Kind == Semicolon {
		p.unexpected("a value to compare with")
	}
	m.Right = p.flags()
	if p.isPunct("/") {
		p.advance()
		m.Right = &Masked{Pos: m.Right.Position(), Value: m.Right, Mask: p.mask()}
	}
	return m
}

// flags parses a constant or a list of them.
func (p *parser) flags() Expr {
	x := p.constant()
	if !p.isPunct(",") {
		return x
	}
	l := &List{Pos: x.Position(), Items: []Expr{x}}
	for p.acceptPunct(",") {
		l.Items = append(l.Items, p.constantPart())
	}
	return l
}

// verdict parses a verdict; it returns nil, without an error, when there is
// none.
func (p *parser) verdict() *Verdict {
	if p.tok.Kind != Ident {
		return nil
	}
	v := &Verdict{Pos: p.tok.Pos, Kind: p.tok.Text}
	switch v.Kind {
	case "accept", "drop", "return", "continue":
		p.advance()
		return v
	case "jump", "goto":
		p.advance()
		v.Chain = p.expectIdent("the name of a chain")
		return v
	default:
		return nil
	}
}

// log parses "log" and its options.
func (p *parser) log() Stmt {
	l := &Log{Pos: p.tok.Pos}
	p.advance()
	u32 := func(bits int) *uint32 {
		p.advance()
		n := uint32(p.number("a number", bits))
		return &n
	}
	for p.err == nil && p.tok.Kind == Ident {
		switch p.tok.Text {
		case "prefix":
			p.advance()
			if p.tok.Kind == Addr || p.tok.Kind == Word {
				p.tok.Kind = String // a word like others here
			}
			prefix := p.text("a log prefix")
			l.Prefix = &prefix
		case "level":
			p.advance()
			if p.tok.Kind == String {
				p.tok.Kind = Ident // quotes change nothing here
			}
			l.Level = p.oneOf("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit")
		case "group":
			l.Group = u32(16)
		case "snaplen":
			l.Snaplen = u32(32)
		case "queue-threshold":
			l.QueueThreshold = u32(16)
		case "flags":
			p.advance()
			p.logFlags(l)
		default:
			return l
		}
	}
	return l
}

// logFlags parses one "flags ..." option of log.
func (p *parser) logFlags(l *Log) {
	add := func(flag string) {
		if !slices.Contains(l.Flags, flag) {
			l.Flags = append(l.Flags, flag)
		}
	}
	switch p.oneOf("tcp", "ip", "skuid", "ether", "all") {
	case "tcp":
		for {
			add("tcp " + p.oneOf("sequence", "options"))
			if !p.acceptPunct(",") {
				return
			}
		}
	case "ip":
		p.oneOf("options")
		add("ip options")
	case "skuid":
		add("skuid")
	case "ether":
		add("ether")
	case "all":
		add("all")
	}
}

// reject parses "reject [with icmp X | icmpv6 X | icmpx X | tcp reset]".
func (p *parser) reject() Stmt {
	r := &Reject{Pos: p.tok.Pos}
	p.advance()
	if !p.acceptIdent("with") {
		return r
	}
	r.With = p.oneOf("icmp", "icmpv6", "icmpx", "tcp")
	if r.With == "tcp" {
		p.oneOf("reset")
		r.With = "tcp reset"
		return r
	}
	p.acceptIdent("type")
	if p.tok.Kind != Ident && p.tok.Kind != Number {
		p.unexpected("a code such as port-unreachable, or its number")
		return r
	}
	r.Code = p.constantPrimary()
	return r
}
