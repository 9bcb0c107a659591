package syntax

import (
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
)

// stateful parses a statement that keeps a state, or returns nil, without an
// error, when there is none. These are the statements that elements of sets can
// have too.
func (p *parser) stateful() Stmt {
	switch {
	case p.isIdent("counter"):
		return p.counter()
	case p.isIdent("limit"):
		return p.limit()
	case p.isIdent("quota"):
		return p.quota()
	case p.isIdent("ct") && p.next.Kind == Ident && p.next.Text == "count":
		return p.connLimit()
	default:
		return nil
	}
}

// counter parses "counter [packets N] [bytes N]" and "counter name X".
func (p *parser) counter() Stmt {
	c := &Counter{Pos: p.tok.Pos}
	p.advance()
	if p.acceptIdent("name") {
		return p.objectRef(c.Pos, nft.ObjectCounter)
	}
	for p.err == nil {
		switch {
		case p.acceptIdent("packets"):
			c.Packets = p.number("a number of packets", 64)
		case p.acceptIdent("bytes"):
			c.Bytes = p.number("a number of bytes", 64)
		default:
			return c
		}
	}
	return c
}

// limit parses "limit rate [over] N/second [burst N packets]" and "limit name X".
func (p *parser) limit() Stmt {
	l := &Limit{Pos: p.tok.Pos}
	p.advance()
	if p.acceptIdent("name") {
		return p.objectRef(l.Pos, nft.ObjectLimit)
	}
	p.rate(l)
	return l
}

// rate parses a limit without its first word.
func (p *parser) rate(l *Limit) {
	p.oneOf("rate")
	l.Over = p.acceptIdent("over")
	l.Rate = p.number("a rate", 64)
	switch {
	case p.acceptPunct("/"):
		l.Per = p.oneOf(datatype.TimeUnits.Names()...)
	default:
		// "bytes/second" is one token, "bytes / second" three.
		pos := p.tok.Pos
		word := p.expectIdent("/second, /minute, ..., or bytes/second")
		var ok bool
		if l.Unit, l.Per, ok = strings.Cut(word, "/"); !ok {
			p.expectPunct("/")
		}
		if l.Per == "" {
			l.Per = p.oneOf(datatype.TimeUnits.Names()...)
		}
		_, isBytes := datatype.ByteUnits.Size(l.Unit)
		if _, isTime := datatype.TimeUnits.Size(l.Per); !isBytes || !isTime {
			p.fail(pos, "unknown rate unit %q: want bytes, kbytes or mbytes per second, minute, hour, day or week", word)
		}
	}
	if p.acceptIdent("burst") {
		l.Burst = p.number("a burst", 32)
		l.BurstUnit = p.oneOf(append([]string{"packets"}, datatype.ByteUnits.Names()...)...)
	}
}

// quota parses "quota [over|until] N UNIT [used N UNIT]" and "quota name X".
func (p *parser) quota() Stmt {
	q := &Quota{Pos: p.tok.Pos}
	p.advance()
	if p.acceptIdent("name") {
		return p.objectRef(q.Pos, nft.ObjectQuota)
	}
	p.amounts(q)
	return q
}

// amounts parses a quota without its first word.
func (p *parser) amounts(q *Quota) {
	if !p.acceptIdent("until") {
		q.Over = p.acceptIdent("over")
	}
	q.Bytes = p.number("a number of bytes, kbytes or mbytes", 64)
	q.Unit = p.oneOf(datatype.ByteUnits.Names()...)
	if p.acceptIdent("used") {
		q.Used = p.number("a number of bytes, kbytes or mbytes", 64)
		q.UsedUnit = p.oneOf(datatype.ByteUnits.Names()...)
	}
}

// connLimit parses "ct count [over] N".
func (p *parser) connLimit() Stmt {
	c := &ConnLimit{Pos: p.tok.Pos}
	p.advance()
	p.advance()
	c.Over = p.acceptIdent("over")
	c.Count = uint32(p.number("a number of connections", 32))
	return c
}

// objectRef parses the name of an object, or a map to names.
func (p *parser) objectRef(pos Pos, kind nft.ObjectKind) Stmt {
	return newObjectRef(pos, kind, p.value())
}

// newObjectRef makes the use of an object. A name counts as quoted, as nft lists it.
func newObjectRef(pos Pos, kind nft.ObjectKind, ref Expr) *ObjectRef {
	if c, ok := ref.(*Const); ok {
		ref = &Const{Pos: c.Pos, Text: c.Text, Quoted: true}
	}
	return &ObjectRef{Pos: pos, Kind: kind, Ref: ref}
}

// ctObject parses "ct timeout set X" and "ct expectation set X"; it returns nil,
// without an error, at other words.
func (p *parser) ctObject() Stmt {
	pos := p.tok.Pos
	if !p.isIdent("ct") || p.next.Kind != Ident {
		return nil
	}
	kind := nft.ObjectCTTimeout
	switch p.next.Text {
	case "timeout":
	case "expectation":
		kind = nft.ObjectCTExpectation
	default:
		return nil
	}
	p.advance()
	p.advance()
	p.oneOf("set")
	return p.objectRef(pos, kind)
}

// assign makes the statement of "TARGET set VALUE", at the value. Some targets
// take the name of an object.
func (p *parser) assign(pos Pos, target Expr) Stmt {
	x := p.assignment()
	switch t := target.(type) {
	case *CT:
		if t.Key == "helper" && t.Dir == "" {
			return newObjectRef(pos, nft.ObjectCTHelper, x)
		}
	case *Meta:
		if _, ct := x.(*CT); t.Key == "secmark" && t.KeyPos != t.Pos && !ct {
			return newObjectRef(pos, nft.ObjectSecMark, x)
		}
	}
	return &Assign{Pos: pos, Target: target, Value: x}
}
