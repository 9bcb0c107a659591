package syntax

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
)

// Stmt is a statement of a rule. Only this package implements it.
type Stmt interface {
	Position() Pos
	printStmt(p *printer)
}

// next is the following token
func statement(word, next scan.Token) func(*parser) Stmt {
	if word.Kind != scan.Ident {
		return nil
	}
	if isVerdict(word) {
		return func(p *parser) Stmt { return p.verdict() }
	}
	if next.IsWord("name") && nft.ObjectKind(word.Text).Statement() == word.Text+" name" {
		return (*parser).objectName
	}
	switch word.Text {
	case "add", "update", "delete":
		return (*parser).dynamic
	case "counter":
		return (*parser).counter
	case "ct":
		switch {
		case next.IsWord("count"):
			return (*parser).ctCount
		case next.IsWord("timeout", "expectation"):
			return (*parser).ctObject
		}
	case "dnat", "snat", "masquerade", "redirect":
		return (*parser).nat
	case "dup":
		return (*parser).dup
	case "flow":
		return (*parser).flow
	case "fwd":
		return (*parser).fwd
	case "limit":
		return (*parser).limit
	case "log":
		return (*parser).log
	case "meter":
		return (*parser).meter
	case "notrack":
		return (*parser).notrack
	case "queue":
		return (*parser).queue
	case "quota":
		return (*parser).quota
	case "reject":
		return (*parser).reject
	case "reset":
		return (*parser).reset
	case "set":
		return (*parser).oldDynamic
	case "synproxy":
		return (*parser).synproxy
	case "tproxy":
		return (*parser).tproxy
	case "xt":
		return (*parser).xt
	}
	return nil
}

func (p *parser) stmt() Stmt {
	if parse := statement(p.Tok, p.Ahead); parse != nil {
		return parse(p)
	}
	pos := p.Tok.Pos
	x := p.selector()
	switch {
	case p.AcceptIdent("vmap"):
		return &Vmap{Pos: pos, Key: x, Table: p.table()}
	case p.AcceptIdent("set"):
		return p.assign(pos, x)
	default:
		return p.match(p.mapped(x))
	}
}

// stateful returns nil without a stateful statement; elements of sets can have such statements too.
func (p *parser) stateful() Stmt {
	if !p.Tok.IsWord("counter", "limit", "quota") && !(p.IsIdent("ct") && p.Ahead.IsWord("count")) {
		return nil
	}
	return statement(p.Tok, p.Ahead)(p)
}

func (p *parser) statefulList() []Stmt {
	var list []Stmt
	for p.err == nil {
		s := p.stateful()
		if s == nil {
			break
		}
		list = append(list, s)
	}
	return list
}

// ParseStateful parses the statements of a set's declaration or of an element. An empty text is an
// *Error.
func ParseStateful(text string) ([]Stmt, error) {
	p := newParser(text)
	p.Inline++
	list := p.statefulList()
	if p.Tok.Kind != scan.EOF || len(list) == 0 {
		p.Unexpected("counter, limit, quota or ct count")
	}
	return result(p, list, "")
}
