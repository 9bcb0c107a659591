package syntax

import (
	"slices"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// Expr is an expression. Only this package implements it.
type Expr interface {
	Position() Pos
	printExpr(p *printer)
}

// As in nft's grammar; higher binds tighter.
var precedences = map[string]int{"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4}

var binaryWords = map[string]string{"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}

func operator[T any](p *parser, words map[string]string, punctuation map[string]T) string {
	switch p.Tok.Kind {
	case scan.Punct:
		if _, ok := punctuation[p.Tok.Text]; ok {
			return p.Tok.Text
		}
	case scan.Ident:
		return words[p.Tok.Text]
	}
	return ""
}

func (p *parser) selector() Expr { return p.concat(p.selectorPart) }

func (p *parser) selectorPart() Expr { return p.binary(p.selectorPrimary, 1) }

func (p *parser) value() Expr {
	p.assigned = true
	x := p.operand()
	p.assigned = false
	return x
}

func (p *parser) operand() Expr {
	return p.mapped(p.concat(func() Expr { return p.span(p.selectorPart) }))
}

func (p *parser) constant() Expr {
	return p.concat(func() Expr { return p.span(p.constantPart) })
}

func (p *parser) constantPart() Expr { return p.binary(p.constantPrimary, 1) }

func (p *parser) concat(part func() Expr) Expr {
	x := part()
	if !p.IsPunct(".") {
		return x
	}
	c := &Concat{Pos: x.Position(), Parts: append(make([]Expr, 0, 4), x)}
	for p.AcceptPunct(".") {
		c.Parts = append(c.Parts, part())
	}
	return c
}

func (p *parser) span(part func() Expr) Expr {
	x := part()
	switch {
	case p.AcceptPunct("-"):
		return &Range{Pos: x.Position(), From: x, To: part()}
	case p.IsPunct("/") && p.Ahead.Kind == scan.Number:
		p.Advance()
		return &Prefix{Pos: x.Position(), X: x, Len: int(p.ExpectNumber("a prefix length", 16))}
	default:
		return x
	}
}

// binary parses operations of at least level.
func (p *parser) binary(primary func() Expr, level int) Expr {
	x := primary()
	for p.err == nil {
		op := operator(p, binaryWords, precedences)
		if op == "" || precedences[op] < level {
			return x
		}
		p.Advance()
		if p.Ahead.Kind == scan.Ident && selector(p.Tok, p.Ahead) != nil {
			p.Fail(p.Tok, "nft 1.1.2 has a selector after %s, on Linux 6.13; weft has only constants there", op)
		}
		x = &Binary{Pos: x.Position(), Op: op, X: x, Y: p.binary(p.constantPrimary, precedences[op]+1)}
		// Later walks over the tree recurse into the left operands.
		p.nest()
		defer p.unnest()
	}
	return x
}

func (p *parser) constantPrimary() Expr {
	pos := p.Tok.Pos
	switch {
	case p.IsPunct("("):
		p.open()
		x := p.constantPart()
		p.close(")")
		return x
	case p.AcceptPunct("["):
		x := p.constantOf(scan.Addr, "an IPv6 address")
		p.ExpectPunct("]")
		return x
	}
	switch p.Tok.Kind {
	case scan.Ident, scan.Number, scan.Addr, scan.Word, scan.String:
		c := &Const{Pos: pos, Text: p.Tok.Text, Quoted: p.Tok.Kind == scan.String}
		p.Advance()
		return c
	default:
		p.Unexpected("a value")
		return &Const{Pos: pos}
	}
}

func (p *parser) constantOf(kind scan.Kind, want string) Expr {
	c := &Const{Pos: p.Tok.Pos, Text: p.Tok.Text}
	if p.Tok.Kind != kind {
		p.Unexpected(want)
	}
	p.Advance()
	return c
}

func (p *parser) selectorPrimary() Expr {
	switch {
	case p.IsPunct("("):
		p.open()
		x := p.selectorPart()
		p.close(")")
		return x
	case p.IsPunct("@"):
		return p.rawPayload()
	}
	p.refuseNewer()
	if parse := selector(p.Tok, p.Ahead); parse != nil && !p.isConstantHeader() {
		return parse(p)
	}
	return p.constantPrimary()
}

// next is the following token
func selector(word, next scan.Token) func(*parser) Expr {
	if word.Kind != scan.Ident {
		return nil
	}
	text := word.Text
	switch {
	case (text == "ip" || text == "tcp") && next.IsWord("option"), text == "sctp" && next.IsWord("chunk"):
		return (*parser).option
	case text == "rt" && next.Kind == scan.Ident && !next.IsWord(routingFields...):
		return (*parser).rt
	case (text == "exthdr" || slices.Contains(extensionHeaders, text)) && next.Kind == scan.Ident:
		return (*parser).extensionHeader
	case text == "ipsec" && next.IsWord("in", "out"):
		return (*parser).ipsec
	case text == "meta", slices.Contains(metaKeys, text):
		return (*parser).meta
	case slices.Contains(headers, text):
		return (*parser).payload
	}
	switch text {
	case "ct":
		return (*parser).ct
	case "fib":
		return (*parser).fib
	case "jhash", "symhash":
		return (*parser).hash
	case "numgen":
		return (*parser).numgen
	case "osf":
		return (*parser).osf
	case "socket":
		return (*parser).socket
	default:
		return nil
	}
}

// A field never follows a constant, such as an Ethernet type.
func (p *parser) isConstantHeader() bool {
	if !slices.Contains(constantHeaders, p.Tok.Text) {
		return false
	}
	next := p.Ahead
	return next.Kind != scan.Ident || next.Text == "comment" ||
		statement(next, scan.Token{}) != nil || selector(next, scan.Token{}) != nil
}
