package syntax

import "github.com/weft-proxy/weft/nft/internal/scan"

// Payload is a field of a packet header, such as "ip saddr".
type Payload struct {
	Pos
	Proto, Field string
	FieldPos     Pos
}

// RawPayload is payload at a given place, in bits: "@th,16,16".
type RawPayload struct {
	Pos
	// ll, nh, th, or ih (after the transport header)
	Base         string
	Offset, Bits uint32
}

var headers = []string{
	"ether", "vlan", "arp", "ip", "icmp", "igmp", "ip6", "icmpv6", "tcp", "udp", "udplite", "sctp", "dccp", "th",
	"ah", "esp", "comp",
}

// names that are also constants, such as Ethernet types
var constantHeaders = []string{"ether", "vlan", "arp", "ip", "ip6"}

func (p *parser) payload() Expr {
	x := &Payload{Pos: p.Tok.Pos, Proto: p.Tok.Text}
	p.Advance()
	x.FieldPos = p.Tok.Pos
	if p.Tok.Kind != scan.Ident {
		p.Unexpected("a field of the " + x.Proto + " header")
	}
	x.Field = p.ExpectIdent("")
	if x.Proto == "arp" && (x.Field == "saddr" || x.Field == "daddr") {
		x.Field += " " + p.OneOf("ether", "ip")
	}
	return x
}

func (p *parser) rawPayload() Expr {
	x := &RawPayload{Pos: p.Tok.Pos}
	p.ExpectPunct("@")
	x.Base = p.OneOf("ll", "nh", "th", "ih")
	x.Offset, x.Bits = p.offsetAndLength()
	return x
}

func (p *parser) offsetAndLength() (offset, length uint32) {
	p.ExpectPunct(",")
	offset = p.uint32("an offset in bits")
	p.ExpectPunct(",")
	return offset, p.uint32("a length in bits")
}

func (x *Payload) printExpr(p *printer) { p.str(x.Proto, " ", x.Field) }

func (x *RawPayload) printExpr(p *printer) {
	p.str("@", x.Base)
	p.offsetAndLength(x.Offset, x.Bits)
}

func (p *printer) offsetAndLength(offset, length uint32) {
	p.str(",")
	p.num(uint64(offset))
	p.str(",")
	p.num(uint64(length))
}
