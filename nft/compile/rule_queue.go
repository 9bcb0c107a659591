package compile

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

var wantQueue = want{typ: datatype.Integer, width: 16, order: datatype.HostEndian}

const maxQueue = 1<<16 - 1

func (r *ruleCompiler) queue(s *syntax.Queue) {
	e := &expr.Queue{Total: 1, Flags: uint16(expr.Flags(s.Flags, syntax.QueueFlags))}
	if s.Num == nil {
		r.add(exprStmt{e})
		return
	}
	t := r.argument(s.Num, wantQueue)
	numbers, isRange := t.(*rangeTerm)
	number, isConst := t.(*constTerm)
	limit, limited := maxValue(t)
	switch {
	case isConst:
		e.Num = uint16(number.v.lo)
	case isRange:
		e.Num, e.Total = uint16(numbers.from.lo), uint16(numbers.to.lo-numbers.from.lo+1)
		if e.Total == 0 {
			fail(s.Num.Position(), "queue: %s are 65536 queues: the kernel takes at most 65535", describe(s.Num))
		}
	case limited && limit > maxQueue:
		fail(s.Num.Position(), "queue: the number can be %d: want at most %d", limit, maxQueue)
	}
	switch {
	case e.Flags&unix.NFT_QUEUE_FLAG_CPU_FANOUT != 0 && !isRange:
		fail(s.Num.Position(), "queue: fanout needs a range of queues, such as 0-3")
	case isConst || isRange:
		r.add(exprStmt{e})
	default:
		r.addValue(t, func(reg uint32) expr.Expr {
			e.Register = reg
			return e
		})
	}
}
