package syntax

import (
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// Print returns a rule in canonical form, with its comment.
func Print(r *Rule) string {
	p := &printer{}
	p.b.Grow(64)
	for i, s := range r.Stmts {
		if i > 0 {
			p.str(" ")
		}
		s.printStmt(p)
	}
	if r.Comment != "" {
		p.str(" comment ")
		p.quote(nft.CommentText(r.Comment))
	}
	return p.b.String()
}

// PrintStmt returns a statement in canonical form.
func PrintStmt(s Stmt) string {
	p := &printer{}
	s.printStmt(p)
	return p.b.String()
}

// PrintExpr returns an expression in canonical form.
func PrintExpr(x Expr) string {
	p := &printer{}
	x.printExpr(p)
	return p.b.String()
}

type printer struct {
	b strings.Builder
	// an IPv6 address needs brackets before a port
	brackets bool
}

func (p *printer) str(text ...string) {
	for _, s := range text {
		p.b.WriteString(s)
	}
}

func (p *printer) words(first string, more ...string) {
	p.str(first)
	for _, w := range more {
		if w != "" {
			p.str(" ", w)
		}
	}
}

func (p *printer) num(n uint64) {
	var buf [20]byte
	p.b.Write(strconv.AppendUint(buf[:0], n, 10))
}

func (p *printer) option(name string, n uint64) {
	p.str(" ", name, " ")
	p.num(n)
}

func (p *printer) optional(name string, n uint32) {
	if n != 0 {
		p.option(name, uint64(n))
	}
}

func given[T uint8 | uint16 | uint32](p *printer, name string, n *T) {
	if n != nil {
		p.option(name, uint64(*n))
	}
}

// The scanner rejects quotes in strings, so escapes are not needed.
func (p *printer) quote(s string) { p.str(`"`, s, `"`) }

func (p *printer) over(over bool) {
	if over {
		p.str("over ")
	}
}

func (p *printer) list(xs []Expr, sep string) {
	for i, x := range xs {
		if i > 0 {
			p.str(sep)
		}
		x.printExpr(p)
	}
}
