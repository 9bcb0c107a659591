package syntax

// Match compares: "tcp dport 80", "ip saddr != @blocked".
type Match struct {
	Pos
	Left Expr
	// "", "==", "!=", "<", ">", "<=", ">=", or "!" if no flag may be set. If empty, the type
	// decides: equal, in the set, or any of the flags.
	Op string
	// or of the right side if Op is empty
	OpPos Pos
	Right Expr
}

var comparisonWords = map[string]string{"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "not": "!"}

var comparisons = map[string]bool{"==": true, "!=": true, "<": true, ">": true, "<=": true, ">=": true, "!": true}

func (p *parser) match(left Expr) Stmt {
	m := &Match{Pos: left.Position(), Left: left, Op: operator(p, comparisonWords, comparisons), OpPos: p.Tok.Pos}
	if m.Op != "" {
		p.Advance()
	}
	if p.IsPunct("{") || p.IsPunct("@") {
		m.Right = p.table()
		return m
	}
	if p.Tok.EndsStatement() && !p.Tok.Is("}") {
		p.Unexpected("a value to compare with")
	}
	m.Right = p.flags()
	if p.AcceptPunct("/") {
		m.Right = &Masked{Pos: m.Right.Position(), Value: m.Right, Mask: p.mask()}
	}
	return m
}

func (p *parser) flags() Expr {
	x := p.constant()
	if !p.IsPunct(",") {
		return x
	}
	l := &List{Pos: x.Position(), Items: []Expr{x}}
	for p.AcceptPunct(",") {
		l.Items = append(l.Items, p.constantPart())
	}
	return l
}

// mask parses at least two flags.
func (p *parser) mask() Expr {
	x := p.flags()
	if _, ok := x.(*List); !ok {
		p.Unexpected("a comma: a mask of one flag is written & FLAG == VALUE")
	}
	return x
}

// nft(8) requires "==" after operations on bits.
func (m *Match) printStmt(p *printer) {
	m.Left.printExpr(p)
	p.words("", m.Op)
	p.str(" ")
	m.Right.printExpr(p)
}
