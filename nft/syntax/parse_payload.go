package syntax

import "slices"

// headers are the packet headers whose fields are selectors.
var headers = []string{
	"ether", "vlan", "arp", "ip", "icmp", "igmp", "ip6", "icmpv6", "tcp", "udp", "udplite", "sctp", "dccp", "th",
	"ah", "esp", "comp",
}

// constantHeaders are the names of headers that are constants too, such as
// Ethernet types.
var constantHeaders = []string{"ether", "vlan", "arp", "ip", "ip6"}

// isConstantHeader reports whether the current token is such a name without a
// field behind it.
func (p *parser) isConstantHeader() bool {
	if !slices.Contains(constantHeaders, p.tok.Text) {
		return false
	}
	switch p.next.Kind {
	case Ident:
		return slices.Contains(headers, p.next.Text) || slices.Contains(plainStmts, p.next.Text)
	default:
		return true
	}
}

// plainStmts are words that begin a statement and are no fields.
var plainStmts = []string{
	"accept", "add", "comment", "continue", "counter", "ct", "delete", "dnat", "drop", "dup", "fib", "flow", "fwd", "goto", "jump",
	"limit", "log", "masquerade", "meta", "notrack", "numgen", "queue", "quota", "redirect", "reject", "return", "snat", "synproxy",
	"tproxy", "update",
}

// payload parses a field of a header: "ip saddr", "arp saddr ether".
func (p *parser) payload() Expr {
	x := &Payload{Pos: p.tok.Pos, Proto: p.tok.Text}
	p.advance()
	x.FieldPos = p.tok.Pos
	if p.tok.Kind != Ident {
		p.unexpected("a field of the " + x.Proto + " header")
		return x
	}
	x.Field = p.expectIdent("a header field")
	if x.Proto == "arp" && (x.Field == "saddr" || x.Field == "daddr") {
		x.Field += " " + p.oneOf("ether", "ip")
	}
	return x
}

// rawBases are the layers that raw payload can be in: link, network,
// transport, and what comes behind the transport header.
var rawBases = []string{"ll", "nh", "th", "ih"}

// rawPayload parses "@BASE,OFFSET,LENGTH".
func (p *parser) rawPayload() Expr {
	x := &RawPayload{Pos: p.tok.Pos}
	p.expectPunct("@")
	x.Base = p.oneOf(rawBases...)
	p.expectPunct(",")
	x.Offset = uint32(p.number("an offset in bits", 32))
	p.expectPunct(",")
	x.Bits = uint32(p.number("a length in bits", 32))
	return x
}

// rawPayload writes raw payload.
func (p *printer) rawPayload(x *RawPayload) {
	p.str("@")
	p.str(x.Base)
	p.str(",")
	p.num(uint64(x.Offset))
	p.str(",")
	p.num(uint64(x.Bits))
}
