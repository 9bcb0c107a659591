package syntax

import (
	"slices"
	"strings"
)

// stmt parses one statement.
func (p *parser) stmt() Stmt {
	pos := p.tok.Pos
	p.otherStmt()
	if p.tok.Kind == Ident {
		if v := p.verdict(); v != nil {
			return v
		}
		switch p.tok.Text {
		case "counter":
			return p.counter()
		case "log":
			return p.log()
		case "limit":
			return p.limit()
		case "reject":
			return p.reject()
		case "dnat", "snat", "masquerade", "redirect":
			return p.nat()
		case "notrack":
			p.advance()
			return &Notrack{pos}
		case "add", "update", "delete":
			return p.dynamic()
		}
	}
	x := p.selector()
	switch {
	case p.acceptIdent("vmap"):
		return &Vmap{Pos: pos, Key: x, Table: p.table()}
	case p.isIdent("set"):
		p.advance()
		return &Assign{Pos: pos, Target: x, Value: p.value()}
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
		m.Right = &Masked{Pos: m.Right.Position(), Value: m.Right, Mask: p.flags()}
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

// counter parses "counter [packets N bytes N]".
func (p *parser) counter() Stmt {
	c := &Counter{Pos: p.tok.Pos}
	p.advance()
	if p.acceptIdent("packets") {
		c.Packets = p.number("a number of packets", 64)
		p.oneOf("bytes")
		c.Bytes = p.number("a number of bytes", 64)
	}
	return c
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
			prefix := p.text("a log prefix")
			l.Prefix = &prefix
		case "level":
			p.advance()
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

// limit parses "limit rate [over] N/second [burst N packets]".
func (p *parser) limit() Stmt {
	l := &Limit{Pos: p.tok.Pos}
	p.advance()
	p.oneOf("rate")
	if !p.acceptIdent("until") {
		l.Over = p.acceptIdent("over")
	}
	l.Rate = p.number("a rate", 64)
	switch {
	case p.acceptPunct("/"):
		l.Per = p.oneOf("second", "minute", "hour", "day", "week")
	default:
		// "bytes/second" is one token, "bytes / second" three.
		pos := p.tok.Pos
		word := p.expectIdent("/second, /minute, ..., or bytes/second")
		var ok bool
		if l.Unit, l.Per, ok = strings.Cut(word, "/"); !ok {
			p.expectPunct("/")
		}
		if l.Per == "" {
			l.Per = p.oneOf("second", "minute", "hour", "day", "week")
		}
		if !slices.Contains([]string{"bytes", "kbytes", "mbytes"}, l.Unit) ||
			!slices.Contains([]string{"second", "minute", "hour", "day", "week"}, l.Per) {
			p.fail(pos, "unknown rate unit %q: want bytes, kbytes or mbytes per second, minute, hour, day or week", word)
		}
	}
	if p.acceptIdent("burst") {
		l.Burst = p.number("a burst", 32)
		l.BurstUnit = p.oneOf("packets", "bytes", "kbytes", "mbytes")
	}
	return l
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
	r.Code = p.constantPrimary()
	return r
}

// nat parses dnat, snat, masquerade and redirect.
func (p *parser) nat() Stmt {
	n := &NAT{Pos: p.tok.Pos, Kind: p.tok.Text}
	p.advance()
	switch n.Kind {
	case "masquerade", "redirect":
		if p.acceptIdent("to") {
			p.expectPunct(":")
			n.Port = p.value()
		}
	default:
		p.natTarget(n)
	}
	for p.isIdent("random") || p.isIdent("fully-random") || p.isIdent("persistent") {
		n.Flags = append(n.Flags, p.tok.Text)
		p.advance()
		if !p.acceptPunct(",") {
			break
		}
		if !p.isIdent("random") && !p.isIdent("fully-random") && !p.isIdent("persistent") {
			p.unexpected("random, fully-random or persistent")
		}
	}
	slices.Sort(n.Flags)
	n.Flags = slices.Compact(n.Flags)
	return n
}

// natTarget parses "[ip|ip6] [addr . port|prefix] [to] ADDR[:PORT]".
func (p *parser) natTarget(n *NAT) {
	if (p.isIdent("ip") || p.isIdent("ip6")) && p.next.Kind == Ident {
		switch p.next.Text {
		case "to", "addr", "prefix":
			n.Family = p.expectIdent("a family")
		}
	}
	switch {
	case p.acceptIdent("addr"):
		p.expectPunct(".")
		p.oneOf("port")
		n.AddrPort = true
	case p.isIdent("prefix") && p.next.Kind == Ident && p.next.Text == "to":
		p.advance()
		n.Prefix = true
	}
	p.acceptIdent("to")
	if !p.isPunct(":") {
		n.Addr = p.value()
	}
	if p.acceptPunct(":") {
		n.Port = p.value()
	}
}

// dynamic parses "add|update|delete @set { key [timeout T] [stmts] [: data] }".
func (p *parser) dynamic() Stmt {
	d := &Dynamic{Pos: p.tok.Pos, Op: p.tok.Text}
	p.advance()
	d.Set = p.setRef()
	d.Elem = &Elem{Pos: p.tok.Pos}
	if !p.isPunct("{") {
		p.unexpected(`"{"`)
		return d
	}
	p.open()
	e := d.Elem
	e.Pos = p.tok.Pos
	e.Key = p.value()
	p.elementOptions(e)
	for p.err == nil {
		switch {
		case p.isIdent("limit"):
			e.Stmts = append(e.Stmts, p.limit())
			continue
		case p.isIdent("counter"):
			e.Stmts = append(e.Stmts, p.counter())
			continue
		}
		break
	}
	if p.acceptPunct(":") {
		e.Value = p.value()
	}
	p.close("}")
	return d
}
