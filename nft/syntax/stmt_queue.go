package syntax

import (
	"strings"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// Queue passes the packet to a program in user space.
type Queue struct {
	Pos
	// nil (queue 0), a number, a range, a generator of numbers or a Map
	Num   Expr
	Flags []string
}

// QueueFlags are the flags of queue by their bits.
var QueueFlags = []string{"bypass", "fanout"}

// queue parses "queue [num N[-N]] [FLAGS]" in any order, "queue [flags FLAGS] to TARGET", or "queue
// flags FLAGS num N[-N]".
func (p *parser) queue() Stmt {
	q := &Queue{Pos: p.begin()}
	switch {
	case p.AcceptIdent("flags"):
		q.Flags = p.flagList(q.Flags, QueueFlags...)
		if p.AcceptIdent("num") {
			q.Num = p.queueNumbers()
			return q
		}
		p.OneOf("to")
		q.Num = p.queueTarget()
		return q
	case p.AcceptIdent("to"):
		q.Num = p.queueTarget()
		return q
	}
	for p.err == nil {
		switch {
		case p.AcceptIdent("num"):
			q.Num = p.queueNumbers()
		case p.Tok.IsWord(QueueFlags...):
			q.Flags = p.flagList(q.Flags, QueueFlags...)
		default:
			return q
		}
	}
	return q
}

func (p *parser) queueNumbers() Expr {
	return p.span(func() Expr { return p.constantOf(scan.Number, "the number of a queue") })
}

// nft accepts a generator or a hash, because its range is known, but no selector.
func (p *parser) queueTarget() Expr {
	if p.Tok.Kind == scan.Number {
		return p.queueNumbers()
	}
	pos := p.Tok.Pos
	generator := p.Tok.IsWord("numgen", "jhash", "symhash")
	x := p.value()
	if _, ok := x.(*Map); !ok && !generator {
		p.fail(pos, "a queue is a number, a range, numgen, jhash, symhash or a map: write KEY map { ... }")
	}
	return x
}

func (q *Queue) printStmt(p *printer) {
	flags := strings.Join(q.Flags, ",")
	if q.Num == nil {
		p.words("queue", flags)
		return
	}
	if flags != "" {
		flags = "flags " + flags
	}
	p.words("queue", flags, "to ")
	q.Num.printExpr(p)
}
