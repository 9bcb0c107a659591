package syntax

import "strings"

// Const is a number, address, symbol such as "established", or quoted string.
type Const struct {
	Pos
	// without quotes
	Text   string
	Quoted bool
}

// Prefix is an address prefix: "10.0.0.0/8", of unchecked length.
type Prefix struct {
	Pos
	X   Expr
	Len int
}

// Range is an inclusive range: "1024-2048".
type Range struct {
	Pos
	From, To Expr
}

// Concat is a concatenation: "ip saddr . tcp dport".
type Concat struct {
	Pos
	Parts []Expr
}

// List is a list of flags: "established,related".
type List struct {
	Pos
	Items []Expr
}

// Masked is "VALUE / MASK" in a flag comparison: "syn / syn,ack".
type Masked struct {
	Pos
	Value, Mask Expr
}

// Binary is an operation on bits: "&", "|", "^", "<<" or ">>".
type Binary struct {
	Pos
	Op   string
	X, Y Expr
}

func (x *Const) printExpr(p *printer) {
	switch {
	case x.Quoted:
		p.quote(x.Text)
	case p.brackets && strings.Count(x.Text, ":") > 1:
		p.str("[", x.Text, "]")
	default:
		p.str(x.Text)
	}
}

func (x *Prefix) printExpr(p *printer) {
	x.X.printExpr(p)
	if endsInWord(x.X) {
		p.str(" ")
	}
	p.str("/")
	p.num(uint64(x.Len))
}

func (x *Range) printExpr(p *printer) {
	x.From.printExpr(p)
	if endsInWord(x.From) {
		p.str(" - ")
	} else {
		p.str("-")
	}
	x.To.printExpr(p)
}

// "-" and "/" need a blank after a name, which can contain them.
func endsInWord(x Expr) bool {
	c, ok := x.(*Const)
	if !ok {
		return true
	}
	// A traffic control class has one colon, an address zero or several.
	colons := strings.Count(c.Text, ":")
	return c.Quoted || c.Text == "" || colons == 1 || colons == 0 && !isDigit(c.Text[0])
}

func (x *Concat) printExpr(p *printer) { p.list(x.Parts, " . ") }

func (x *List) printExpr(p *printer) { p.list(x.Items, ",") }

func (x *Masked) printExpr(p *printer) {
	x.Value.printExpr(p)
	p.str(" / ")
	x.Mask.printExpr(p)
}

func (x *Binary) printExpr(p *printer) {
	p.operand(x.X, precedences[x.Op])
	p.str(" ", x.Op, " ")
	p.operand(x.Y, precedences[x.Op]+1)
}

// operand adds parentheses to an operation below level.
func (p *printer) operand(x Expr, level int) {
	if b, ok := x.(*Binary); ok && precedences[b.Op] < level {
		p.str("(")
		x.printExpr(p)
		p.str(")")
		return
	}
	x.printExpr(p)
}
