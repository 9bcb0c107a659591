package syntax

import "github.com/weft-proxy/weft/nft/internal/scan"

// Reject drops the packet and answers it.
type Reject struct {
	Pos
	// empty, icmp, icmpv6, icmpx or "tcp reset"
	With string
	// nil if not given
	Code Expr
}

func (p *parser) reject() Stmt {
	r := &Reject{Pos: p.begin()}
	if !p.AcceptIdent("with") {
		return r
	}
	r.With = p.OneOf("icmp", "icmpv6", "icmpx", "tcp")
	if r.With == "tcp" {
		r.With += " " + p.OneOf("reset")
		return r
	}
	p.AcceptIdent("type")
	if p.Tok.Kind != scan.Ident && p.Tok.Kind != scan.Number {
		p.Unexpected("a code such as port-unreachable, or its number")
		return r
	}
	r.Code = p.constantPrimary()
	return r
}

func (r *Reject) printStmt(p *printer) {
	p.str("reject")
	if r.With != "" {
		p.str(" with ", r.With)
	}
	if r.Code != nil {
		p.str(" ")
		r.Code.printExpr(p)
	}
}
