package syntax

import "time"

// objectStatement parses one statement of a body and puts it in: a later one
// overrides an earlier one, as in nft(8).
func (p *parser) objectStatement(body ObjectBody) {
	switch o := body.(type) {
	case *Counter:
		o.Pos = p.tok.Pos
		p.oneOf("packets")
		o.Packets = p.number("a number of packets", 64)
		p.oneOf("bytes")
		o.Bytes = p.number("a number of bytes", 64)
	case *Limit:
		*o = Limit{Pos: p.tok.Pos}
		p.rate(o)
	case *Quota:
		*o = Quota{Pos: p.tok.Pos}
		p.amounts(o)
	case *HelperBody:
		p.helperStatement(o)
	case *TimeoutBody:
		p.timeoutStatement(o)
	case *ExpectationBody:
		p.expectationStatement(o)
	case *SecMarkBody:
		p.secMark(o)
	case *SynProxyBody:
		p.synProxyBody(o)
	}
}

// helperStatement parses `type "NAME" protocol PROTO` and "l3proto FAMILY".
func (p *parser) helperStatement(o *HelperBody) {
	if p.acceptIdent("l3proto") {
		o.L3Proto = p.l3proto()
		return
	}
	p.oneOf("type", "l3proto")
	at := p.tok
	if at.Kind != String {
		p.unexpected("the name of a helper in double quotes")
		return
	}
	if o.Type = at.Text; len(o.Type) == 0 || len(o.Type) > MaxHelper {
		p.fail(at.Pos, "name %q of a helper has %d bytes: want 1 to %d", o.Type, len(o.Type), MaxHelper)
	}
	p.advance()
	p.oneOf("protocol")
	o.Protocol = p.oneOf("tcp", "udp")
	p.objectEnd()
}

// l3proto parses the family of an l3proto statement, which needs an end.
func (p *parser) l3proto() string {
	family := p.oneOf("ip", "ip6", "inet", "arp", "bridge", "netdev")
	p.objectEnd()
	return family
}

// objectEnd checks that a statement is over that nft(8) wants an end mark behind.
func (p *parser) objectEnd() {
	if p.err == nil && p.tok.Kind != EOF && p.tok.Kind != Newline && p.tok.Kind != Semicolon {
		p.unexpected("the end of the line or \";\"")
	}
}

// timeoutStatement parses "protocol PROTO", "l3proto FAMILY" and "policy = {
// STATE : SECONDS, ... }".
func (p *parser) timeoutStatement(o *TimeoutBody) {
	switch p.oneOf("protocol", "l3proto", "policy") {
	case "protocol":
		o.Protocol = p.oneOf("tcp", "udp")
	case "l3proto":
		o.L3Proto = p.l3proto()
		return
	case "policy":
		p.expectPunct("=")
		p.timeouts(o)
	}
	p.objectEnd()
}

// timeouts parses the braces of a policy. That there is nothing in them is what
// nft(8) lists of one in which all timeouts are the kernel's own.
func (p *parser) timeouts(o *TimeoutBody) {
	if !p.isPunct("{") {
		p.unexpected(`"{"`)
		return
	}
	p.open()
	for p.err == nil && !p.isPunct("}") {
		t := StateTimeout{Pos: p.tok.Pos}
		t.State = p.expectIdent("a state such as established")
		p.expectPunct(":")
		t.Seconds = uint32(p.number("a number of seconds", 32))
		o.Policy = append(o.Policy, t)
		if !p.acceptPunct(",") {
			break
		}
		if p.isPunct("}") {
			p.unexpected("a state such as established")
		}
	}
	p.close("}")
}

// expectationStatement parses one attribute of a ct expectation.
func (p *parser) expectationStatement(o *ExpectationBody) {
	switch p.oneOf("protocol", "dport", "timeout", "size", "l3proto") {
	case "protocol":
		o.Protocol = p.oneOf("tcp", "udp")
	case "dport":
		o.DPort = uint16(p.number("a port", 16))
	case "timeout":
		o.Timeout = p.objectTimeout()
	case "size":
		o.Size = uint8(p.number("a number of expectations", 8))
	case "l3proto":
		o.L3Proto = p.l3proto()
		return
	}
	p.objectEnd()
}

// objectTimeout parses a time that the kernel stores in 32 bits of milliseconds.
func (p *parser) objectTimeout() time.Duration {
	d, ok := p.tok.duration()
	switch {
	case !ok:
		p.unexpected("a time such as 1h30m or 5s")
	case d.Milliseconds() >= 1<<32:
		p.fail(p.tok.Pos, "time %s is too long: want less than 49 days", p.tok.Text)
	default:
		p.advance()
	}
	return d
}

// secMark parses a security context.
func (p *parser) secMark(o *SecMarkBody) {
	at := p.tok
	o.Context = p.text("a security context")
	if p.err == nil && (len(o.Context) == 0 || len(o.Context) > MaxSecContext) {
		p.fail(at.Pos, "security context %.40q has %d bytes: want 1 to %d", o.Context, len(o.Context), MaxSecContext)
	}
}

// synProxyBody parses "mss N wscale N [timestamp] [sack-perm]". With an end mark
// behind the mss there is one behind the wscale too.
func (p *parser) synProxyBody(o *SynProxyBody) {
	*o = SynProxyBody{Given: true}
	p.oneOf("mss")
	o.MSS = uint16(p.number("a segment size", 16))
	p.acceptEnd()
	p.oneOf("wscale")
	o.WScale = uint8(p.number("a window scale", 8))
	p.acceptEnd()
	o.Timestamp = p.acceptIdent("timestamp")
	o.SackPerm = p.acceptIdent("sack-perm")
}

// acceptEnd consumes line ends and semicolons.
func (p *parser) acceptEnd() {
	for p.tok.Kind == Newline || p.tok.Kind == Semicolon {
		p.advance()
	}
}
