package syntax

import (
	"slices"

	"github.com/weft-proxy/weft/nft"
)

// divert parses a statement that sends the packet or its connection elsewhere,
// or returns nil, without an error, when there is none.
func (p *parser) divert() Stmt {
	if p.tok.Kind != Ident {
		return nil
	}
	switch p.tok.Text {
	case "queue":
		return p.queue()
	case "dup":
		return p.dup()
	case "fwd":
		return p.fwd()
	case "tproxy":
		return p.tproxy()
	case "synproxy":
		return p.synproxy()
	case "flow":
		return p.flow()
	default:
		return nil
	}
}

// queue parses the three forms of queue: "queue [num N[-N]] [FLAGS]" in any
// order, "queue [flags FLAGS] to WHAT" and "queue flags FLAGS num N[-N]".
func (p *parser) queue() Stmt {
	q := &Queue{Pos: p.tok.Pos}
	p.advance()
	if p.acceptIdent("flags") {
		p.queueFlags(q)
		if p.acceptIdent("num") {
			q.Num = p.queueNumbers()
			return q
		}
		p.oneOf("to")
		q.Num = p.queueTarget()
		return q
	}
	if p.acceptIdent("to") {
		q.Num = p.queueTarget()
		return q
	}
	for p.err == nil {
		switch {
		case p.acceptIdent("num"):
			q.Num = p.queueNumbers()
		case p.isIdent("bypass"), p.isIdent("fanout"):
			p.queueFlags(q)
		default:
			return q
		}
	}
	return q
}

// queueFlags parses "bypass,fanout".
func (p *parser) queueFlags(q *Queue) {
	for {
		if flag := p.oneOf("bypass", "fanout"); !slices.Contains(q.Flags, flag) {
			q.Flags = append(q.Flags, flag)
			slices.Sort(q.Flags)
		}
		if !p.acceptPunct(",") {
			return
		}
	}
}

// queueNumbers parses the number of a queue or a range of them.
func (p *parser) queueNumbers() Expr {
	number := func() Expr {
		c := &Const{Pos: p.tok.Pos, Text: p.tok.Text}
		if p.tok.Kind != Number {
			p.unexpected("the number of a queue")
		}
		p.advance()
		return c
	}
	return p.span(number)
}

// queueTarget parses what comes after "queue to": numbers, or an expression that
// gives one. Unlike nft's other statements, this one takes no selector but
// generators and hashes, which give numbers of a known range.
func (p *parser) queueTarget() Expr {
	if p.tok.Kind == Number {
		return p.queueNumbers()
	}
	pos := p.tok.Pos
	generator := p.isIdent("numgen") || p.isIdent("jhash") || p.isIdent("symhash")
	x := p.value()
	if _, ok := x.(*Map); !ok && !generator {
		p.fail(pos, "a queue is a number, a range, numgen, jhash, symhash or a map: write KEY map { ... }")
	}
	return x
}

// dup parses "dup to WHERE [device DEVICE]".
func (p *parser) dup() Stmt {
	d := &Dup{Pos: p.tok.Pos}
	p.advance()
	p.oneOf("to")
	d.To = p.value()
	if p.acceptIdent("device") {
		d.Device = p.value()
	}
	return d
}

// fwd parses "fwd to DEVICE" and "fwd ip|ip6 to ADDR device DEVICE".
func (p *parser) fwd() Stmt {
	f := &Fwd{Pos: p.tok.Pos}
	p.advance()
	f.Family = p.family()
	p.oneOf("to")
	x := p.value()
	if f.Family == "" {
		f.Device = x
		return f
	}
	f.Addr = x
	p.oneOf("device")
	f.Device = p.value()
	return f
}

// family parses the "ip" or "ip6" before "to", if it is there.
func (p *parser) family() string {
	if p.isIdent("ip") || p.isIdent("ip6") {
		return p.expectIdent("a family")
	}
	return ""
}

// tproxy parses "tproxy [ip|ip6] to [ADDR][:PORT]".
func (p *parser) tproxy() Stmt {
	t := &TProxy{Pos: p.tok.Pos}
	p.advance()
	t.Family = p.family()
	p.oneOf("to")
	if !p.isPunct(":") {
		t.Addr = p.value()
	}
	if p.acceptPunct(":") {
		t.Port = p.value()
	}
	return t
}

// synproxy parses "synproxy [mss N] [wscale N] [timestamp] [sack-perm]" and
// "synproxy name X".
func (p *parser) synproxy() Stmt {
	s := &SynProxy{Pos: p.tok.Pos}
	p.advance()
	if p.acceptIdent("name") {
		return p.objectRef(s.Pos, nft.ObjectSynProxy)
	}
	for p.err == nil {
		switch {
		case p.acceptIdent("mss"):
			n := uint16(p.number("a segment size", 16))
			s.MSS = &n
		case p.acceptIdent("wscale"):
			n := uint8(p.number("a window scale", 8))
			s.WScale = &n
		case p.acceptIdent("timestamp"):
			s.Timestamp = true
		case p.acceptIdent("sack-perm"):
			s.SackPerm = true
		default:
			return s
		}
	}
	return s
}

// flow parses "flow add @f" and its older form "flow offload @f".
func (p *parser) flow() Stmt {
	f := &FlowAdd{Pos: p.tok.Pos}
	p.advance()
	p.oneOf("add", "offload")
	p.expectPunct("@")
	f.NamePos = p.tok.Pos
	f.Flowtable = p.text("the name of a flowtable")
	return f
}
