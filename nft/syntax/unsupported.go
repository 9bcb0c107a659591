package syntax

import "slices"

// What nft(8) has and weft has not: named, so that an author does not look for
// a slip in what is right. What is added to the parser leaves these lists.
var (
	otherStmts = []string{"dup", "flow", "fwd", "meter", "queue", "quota", "synproxy", "tproxy"}
	// otherExprs are followed by a word.
	otherExprs = []string{"dst", "exthdr", "frag", "hbh", "ipsec", "jhash", "mh", "osf", "rt", "socket", "srh", "symhash"}
	namedStmts = []string{"counter", "limit", "quota"}
)

// otherStmt fails at a statement that weft does not have.
func (p *parser) otherStmt() {
	if p.tok.Kind != Ident {
		return
	}
	switch text := p.tok.Text; {
	case p.next.Kind == Ident && p.next.Text == "name" && slices.Contains(namedStmts, text):
		p.fail(p.tok.Pos, "%s objects are not supported: write the %s into the rule", text, text)
	case slices.Contains(otherStmts, text):
		p.fail(p.tok.Pos, "statement %s is not supported", text)
	}
}

// otherExpr fails at an expression that weft does not have.
func (p *parser) otherExpr() {
	switch text := p.tok.Text; {
	case p.tok.Kind == Punct && text == "@":
		p.fail(p.tok.Pos, "raw payload is not supported: name a header field such as tcp dport")
	case p.tok.Kind != Ident || p.next.Kind != Ident:
	case p.next.Text == "option" && (text == "tcp" || text == "ip"), p.next.Text == "chunk" && text == "sctp":
		p.fail(p.tok.Pos, "%s %s is not supported", text, p.next.Text)
	case slices.Contains(otherExprs, text):
		p.fail(p.tok.Pos, "expression %s is not supported", text)
	}
}
