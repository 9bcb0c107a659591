package syntax

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/internal/scan"
)

// Assign changes the packet or its metadata: "meta mark set 0x1".
type Assign struct {
	Pos
	Target Expr
	Value  Expr
}

// Some targets take an object's name.
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

// assignment parses a value, or flags as in "ct event set new,related".
func (p *parser) assignment() Expr {
	x := p.value()
	c, ok := x.(*Const)
	if !ok || !p.IsPunct(",") || c.Text != "" && isDigit(c.Text[0]) {
		return x
	}
	l := &List{Pos: c.Pos, Items: []Expr{c}}
	for p.AcceptPunct(",") {
		if p.Tok.Kind != scan.Ident && p.Tok.Kind != scan.String {
			p.Unexpected("a name")
		}
		l.Items = append(l.Items, p.constantPrimary())
	}
	return l
}

func (s *Assign) printStmt(p *printer) {
	s.Target.printExpr(p)
	p.str(" set ")
	s.Value.printExpr(p)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
