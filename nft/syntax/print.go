package syntax

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
)

// Print returns the rule in canonical form, with its comment.
func Print(r *Rule) string {
	p := &printer{}
	p.b.Grow(64)
	for i, s := range r.Stmts {
		if i > 0 {
			p.b.WriteByte(' ')
		}
		p.stmt(s)
	}
	if r.Comment != "" {
		p.str(" comment ")
		p.quote(r.Comment)
	}
	return p.b.String()
}

// PrintTypeOf returns a typeof declaration in canonical form, without the word
// "typeof".
func PrintTypeOf(t *TypeOf) string {
	p := &printer{}
	p.parts(t.Key)
	switch {
	case t.Verdict:
		p.str(" : verdict")
	case t.Map && t.Interval:
		p.str(" : interval ")
		p.parts(t.Data)
	case t.Map:
		p.str(" : ")
		p.parts(t.Data)
	}
	return p.b.String()
}

// PrintExpr returns an expression in canonical form.
func PrintExpr(x Expr) string {
	p := &printer{}
	p.expr(x)
	return p.b.String()
}

// printer builds text.
type printer struct {
	b strings.Builder
	// brackets is true where an IPv6 address needs brackets before a port.
	brackets bool
}

func (p *printer) str(s string) { p.b.WriteString(s) }

// num writes a number.
func (p *printer) num(n uint64) {
	var buf [20]byte
	p.b.Write(strconv.AppendUint(buf[:0], n, 10))
}

// quote writes a quoted string. The language has no escapes, and the scanner
// lets no quote into a string.
func (p *printer) quote(s string) {
	p.b.WriteByte('"')
	p.b.WriteString(s)
	p.b.WriteByte('"')
}

// parts writes expressions joined by " . ".
func (p *printer) parts(xs []Expr) {
	for i, x := range xs {
		if i > 0 {
			p.str(" . ")
		}
		p.expr(x)
	}
}

// expr writes an expression.
func (p *printer) expr(x Expr) {
	switch x := x.(type) {
	case *Payload:
		p.str(x.Proto)
		p.str(" ")
		p.str(x.Field)
	case *Exthdr:
		p.exthdr(x)
	case *RawPayload:
		p.rawPayload(x)
	case *Meta:
		p.meta(x)
	case *CT:
		p.ct(x)
	case *FIB:
		p.str("fib ")
		p.str(strings.Join(x.Inputs, " . "))
		p.str(" ")
		p.str(x.Result)
	case *Numgen:
		p.numgen(x)
	case *Rt, *Socket, *OSF, *IPsec, *Hash:
		p.host(x)
	case *Const:
		p.constant(x)
	case *Prefix:
		p.expr(x.X)
		if wordly(x.X) {
			p.str(" ")
		}
		p.str("/")
		p.num(uint64(x.Len))
	case *Range:
		p.rangeExpr(x)
	case *Concat:
		p.parts(x.Parts)
	case *List:
		p.list(x)
	case *Masked:
		p.expr(x.Value)
		p.str(" / ")
		p.expr(x.Mask)
	case *Binary:
		p.operand(x.X, precedence(x.Op))
		p.str(" " + x.Op + " ")
		p.operand(x.Y, precedence(x.Op)+1)
	case *SetRef:
		p.str("@")
		p.str(x.Name)
	case *Set:
		p.set(x)
	case *Wildcard:
		p.str("*")
	case *Map:
		p.expr(x.Key)
		p.str(" map ")
		p.expr(x.Table)
	case *Verdict:
		p.verdict(x)
	default:
		p.str(fmt.Sprintf("<unknown expression %T>", x))
	}
}

// meta writes a meta selector the way nft lists it: some keys stand alone.
func (p *printer) meta(x *Meta) {
	switch x.Key {
	case "iif", "iifname", "iiftype", "oif", "oifname", "oiftype", "iifgroup", "oifgroup":
	default:
		p.str("meta ")
	}
	p.str(x.Key)
}

// ct writes a ct selector.
func (p *printer) ct(x *CT) {
	p.str("ct ")
	for _, word := range []string{x.Dir, x.L3} {
		if word != "" {
			p.str(word)
			p.str(" ")
		}
	}
	p.str(x.Key)
}

// numgen writes a number generator.
func (p *printer) numgen(x *Numgen) {
	p.str("numgen ")
	p.str(x.Mode)
	p.str(" mod ")
	p.num(uint64(x.Mod))
	if x.Offset != 0 {
		p.str(" offset ")
		p.num(uint64(x.Offset))
	}
}

// constant writes a constant.
func (p *printer) constant(x *Const) {
	switch {
	case x.Quoted:
		p.quote(x.Text)
	case p.brackets && strings.Count(x.Text, ":") > 1:
		p.str("[")
		p.str(x.Text)
		p.str("]")
	default:
		p.str(x.Text)
	}
}

// rangeExpr writes a range.
func (p *printer) rangeExpr(x *Range) {
	p.expr(x.From)
	if wordly(x.From) {
		p.str(" - ")
	} else {
		p.str("-")
	}
	p.expr(x.To)
}

// wordly reports whether "-" and "/" behind an expression need a blank: they
// are letters of names.
func wordly(x Expr) bool {
	c, ok := x.(*Const)
	if !ok {
		return true
	}
	// A class of traffic control has one colon, addresses have more or none.
	colons := strings.Count(c.Text, ":")
	return c.Quoted || c.Text == "" || colons == 1 || colons == 0 && !isDigit(c.Text[0])
}

// list writes a list of flags.
func (p *printer) list(x *List) {
	for i, item := range x.Items {
		if i > 0 {
			p.str(",")
		}
		p.expr(item)
	}
}

// operand writes a side of a binary operation, in parentheses where it would
// bind otherwise.
func (p *printer) operand(x Expr, level int) {
	if b, ok := x.(*Binary); ok && precedence(b.Op) < level {
		p.str("(")
		p.expr(x)
		p.str(")")
		return
	}
	p.expr(x)
}

// set writes an anonymous set or map.
func (p *printer) set(x *Set) {
	p.str("{ ")
	for i, e := range x.Elems {
		if i > 0 {
			p.str(", ")
		}
		p.elem(e, false)
	}
	p.str(" }")
}

// elem writes an element. The statements of a dynamic statement's element come
// behind its options, those of others before them.
func (p *printer) elem(e *Elem, dynamic bool) {
	p.expr(e.Key)
	if !dynamic {
		p.statefulList(e.Stmts)
	}
	if e.Timeout != 0 {
		p.str(" timeout ")
		p.str(datatype.FormatDuration(e.Timeout))
	}
	if e.Expires != 0 {
		p.str(" expires ")
		p.str(datatype.FormatDuration(e.Expires))
	}
	if e.Comment != "" {
		p.str(" comment ")
		p.quote(e.Comment)
	}
	if dynamic {
		p.statefulList(e.Stmts)
	}
	if e.Value != nil {
		p.str(" : ")
		p.expr(e.Value)
	}
}

// statefulList writes the statements of an element.
func (p *printer) statefulList(list []Stmt) {
	for _, s := range list {
		p.str(" ")
		p.stmt(s)
	}
}

// verdict writes a verdict.
func (p *printer) verdict(v *Verdict) {
	p.str(v.Kind)
	if v.Chain != "" {
		p.str(" ")
		p.str(v.Chain)
	}
}
