package compile

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// queueStmt hands packets over to user space.
type queueStmt struct {
	// num is nil where the expression has the number.
	num  term
	expr *expr.Queue
}

// wantQueue is the type of the number of a queue.
var wantQueue = want{typ: datatype.Integer, width: 16, order: datatype.HostEndian}

// maxQueue is the greatest number of a queue.
const maxQueue = 1<<16 - 1

// queue evaluates a queue statement.
func (r *ruleCompiler) queue(s *syntax.Queue) {
	out := &queueStmt{expr: &expr.Queue{
		Total: 1, Flags: queueFlags(s.Flags),
	}}
	if s.Num == nil {
		r.add(out)
		return
	}
	t := r.argument(s.Num, wantQueue)
	switch t := t.(type) {
	case *constTerm:
		out.expr.Num = uint16(t.v.lo)
	case *rangeTerm:
		out.expr.Num, out.expr.Total = uint16(t.from.lo), uint16(t.to.lo-t.from.lo+1)
		if out.expr.Total == 0 {
			fail(s.Num.Position(), "queue: %s are 65536 queues: the kernel takes at most 65535", describe(s.Num))
		}
	default:
		if limit, ok := maxValue(t); ok && limit > maxQueue {
			fail(s.Num.Position(), "queue: the number can be %d: want at most %d", limit, maxQueue)
		}
		out.num = t
	}
	if _, isRange := t.(*rangeTerm); out.expr.Flags&unix.NFT_QUEUE_FLAG_CPU_FANOUT != 0 && !isRange {
		fail(s.Num.Position(), "queue: fanout needs a range of queues, such as 0-3")
	}
	r.add(out)
}

// queueFlags returns the kernel's flags.
func queueFlags(words []string) uint16 {
	var flags uint16
	if slices.Contains(words, "bypass") {
		flags |= unix.NFT_QUEUE_FLAG_BYPASS
	}
	if slices.Contains(words, "fanout") {
		flags |= unix.NFT_QUEUE_FLAG_CPU_FANOUT
	}
	return flags
}

// generate is statement's.
func (s *queueStmt) generate(g *generator) {
	if s.num != nil {
		reg := g.loadNew(s.num)
		s.expr.Register = reg.number()
	}
	g.emitOwn(s.expr)
}
