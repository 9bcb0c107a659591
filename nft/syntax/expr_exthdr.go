package syntax

import (
	"slices"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// Exthdr is a field of an extension ("frag id", "tcp option maxseg size") or, without a field, its
// presence.
type Exthdr struct {
	Pos
	Kind ExthdrKind
	// or number of a TCP option
	Name    string
	NamePos Pos
	// empty for the extension alone
	Field    string
	FieldPos Pos
	// of "rt0 addr[1]" and "srh sid[1]"
	Index uint32
	// "tcp option @NAME,OFFSET,LENGTH", in bits
	Raw            bool
	Offset, Length uint32
}

// ExthdrKind is the header of an extension. The kernel's values differ: see selector.ExthdrOp.
type ExthdrKind uint8

const (
	// ExthdrIPv6 is an IPv6 extension header.
	ExthdrIPv6 ExthdrKind = iota
	// ExthdrIPv4 is an IPv4 option.
	ExthdrIPv4
	// ExthdrTCP is a TCP option.
	ExthdrTCP
	// ExthdrSCTP is an SCTP chunk.
	ExthdrSCTP
)

var exthdrWords = [...]string{
	ExthdrIPv6: "exthdr", ExthdrIPv4: "ip option", ExthdrTCP: "tcp option", ExthdrSCTP: "sctp chunk",
}

// String returns the words before the extension's name.
func (k ExthdrKind) String() string { return exthdrWords[k] }

// "rt" counts only before one of routingFields.
var extensionHeaders = []string{"hbh", "rt", "rt0", "rt2", "srh", "frag", "dst", "mh"}

var routingFields = []string{"nexthdr", "hdrlength", "type", "seg-left"}

func (p *parser) extensionHeader() Expr {
	if p.assigned {
		p.Fail(p.Tok, "%s %s cannot be assigned: IPv6 extension headers can only be matched and put into sets", p.Tok.Text, p.Ahead.Text)
	}
	x := &Exthdr{Pos: p.Tok.Pos}
	if p.AcceptIdent("exthdr") {
		x.NamePos = p.Tok.Pos
		x.Name = p.ExpectIdent("the name of an extension header")
		return x
	}
	x.Name, x.NamePos = p.Tok.Text, p.Tok.Pos
	p.Advance()
	x.FieldPos = p.Tok.Pos
	x.Field = p.ExpectIdent("a field of the header")
	if x.Name == "rt0" && x.Field == "addr" || x.Name == "srh" && x.Field == "sid" {
		p.ExpectPunct("[")
		at := p.Tok
		if x.Index = p.uint32("a number from 1"); x.Index == 0 {
			p.Fail(at, "unexpected \"0\": want a number from 1")
		}
		p.ExpectPunct("]")
	}
	return x
}

func (p *parser) option() Expr {
	kind := slices.Index(exthdrWords[:], p.Tok.Text+" "+p.Ahead.Text)
	x := &Exthdr{Pos: p.begin(), Kind: ExthdrKind(kind)}
	p.Advance()
	if x.Kind == ExthdrTCP && p.AcceptPunct("@") {
		x.Raw = true
		p.optionName(x)
		x.Offset, x.Length = p.offsetAndLength()
		return x
	}
	p.optionName(x)
	if p.Tok.Kind == scan.Ident && !followsOption(p.Tok.Text) {
		x.Field, x.FieldPos = p.Tok.Text, p.Tok.Pos
		p.Advance()
	}
	return x
}

func (p *parser) optionName(x *Exthdr) {
	x.NamePos = p.Tok.Pos
	switch x.Name = p.Tok.Text; {
	case p.Tok.Kind == scan.Ident:
		p.Advance()
	case p.Tok.Kind == scan.Number && x.Kind == ExthdrTCP:
		p.ExpectNumber("an option", 8)
	default:
		p.Unexpected("the name of an " + x.Kind.String())
	}
}

func followsOption(word string) bool {
	return comparisonWords[word] != "" || binaryWords[word] != "" ||
		slices.Contains([]string{"exists", "missing", "set", "map", "vmap", "timeout", "expires", "comment", "counter", "limit", "quota", "ct", "last"}, word)
}

func (x *Exthdr) printExpr(p *printer) {
	if x.Kind != ExthdrIPv6 || x.Field == "" {
		p.str(x.Kind.String(), " ")
	}
	if x.Raw {
		p.str("@", x.Name)
		p.offsetAndLength(x.Offset, x.Length)
		return
	}
	p.words(x.Name, x.Field)
	if x.Index != 0 {
		p.str("[")
		p.num(uint64(x.Index))
		p.str("]")
	}
}
