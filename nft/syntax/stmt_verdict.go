package syntax

import "github.com/weft-proxy/weft/nft/internal/scan"

// Verdict is a verdict, with a Chain for jump and goto; also the data of verdict maps.
type Verdict struct {
	Pos
	Kind  string
	Chain string
}

// Vmap looks up a verdict: "tcp dport vmap { 22 : accept }".
type Vmap struct {
	Pos
	Key Expr
	// a *Set or *SetRef
	Table Expr
}

func isVerdict(t scan.Token) bool {
	return t.IsWord("accept", "drop", "return", "continue", "jump", "goto")
}

func (p *parser) verdict() *Verdict {
	v := &Verdict{Pos: p.Tok.Pos, Kind: p.Tok.Text}
	p.Advance()
	if v.Kind == "jump" || v.Kind == "goto" {
		if p.IsPunct("{") {
			p.Fail(p.Tok, "a chain in braces is possible only in the rules of a file: declare a chain, and write its name here")
		}
		v.Chain = p.ExpectIdent("the name of a chain")
	}
	return v
}

func (v *Verdict) printStmt(p *printer) { p.words(v.Kind, v.Chain) }
func (v *Verdict) printExpr(p *printer) { v.printStmt(p) }

func (v *Vmap) printStmt(p *printer) {
	v.Key.printExpr(p)
	p.str(" vmap ")
	v.Table.printExpr(p)
}
