package compile

import (
	"slices"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

type generator struct {
	family nft.Family
	regs   registers
	out    []expr.Expr
}

func (g *generator) emit(e google.Any) { g.out = append(g.out, expr.Library{Any: e}) }

func (g *generator) emitOwn(e expr.Expr) { g.out = append(g.out, e) }

func (g *generator) loadNew(t term) register {
	reg := g.regs.takeFor(t)
	g.load(t, reg)
	return reg
}

func (g *generator) load(t term, dst register) {
	switch t := t.(type) {
	case *constTerm:
		g.emit(&google.Immediate{Register: dst.number(), Data: t.v.bytes(t.bytes(), t.order)})
	case *payloadTerm:
		g.emit(&google.Payload{DestRegister: dst.number(), Base: google.PayloadBase(t.layer - 1), Offset: t.offset / 8, Len: t.bytes()})
	case *exthdrTerm:
		g.emitOwn(&expr.Exthdr{Op: t.op, Type: t.typ, Offset: t.offset / 8, Len: t.bytes(), Present: t.present, Dest: dst.number()})
	case *keyTerm:
		if t.ct {
			g.emitOwn(&expr.CT{Key: t.key.Key, Dest: dst.number(), Direction: t.dir})
			return
		}
		g.emit(&google.Meta{Key: google.MetaKey(t.key.Key), Register: dst.number()})
	case *fibTerm:
		g.emitOwn(newFib(t, dst))
	case *hostTerm:
		g.emitOwn(t.expr(dst.number()))
	case *numberTerm:
		t.load(g, dst)
	case *binaryTerm:
		if t.op == "<<" || t.op == ">>" {
			g.shift(t, dst)
			return
		}
		g.bitwise(t, dst)
	case *swapTerm:
		g.swap(t, dst)
	case *concatTerm:
		for _, p := range t.parts {
			g.load(p, dst)
			dst += register(p.info().slots())
		}
	case *lookupTerm:
		g.lookup(t, dst)
	default:
		fail(t.info().pos, "value %T cannot be loaded", t)
	}
}

func newFib(t *fibTerm, dst register) *expr.Fib {
	e := &expr.Fib{Register: dst.number(), Flags: expr.Flags(t.inputs, expr.FibInputs)}
	e.Result = uint32(slices.Index(expr.FibResults, t.result)) //nolint:gosec // it is one of them
	if t.present {
		e.Flags |= unix.NFTA_FIB_F_PRESENT
	}
	return e
}

// The kernel computes operations with constants in one step: value & mask ^ xor.
func (g *generator) bitwise(t *binaryTerm, dst register) {
	chain := []*binaryTerm{t}
	x := t.x
	for {
		b, ok := x.(*binaryTerm)
		if !ok || b.op == "<<" || b.op == ">>" {
			break
		}
		chain = append(chain, b)
		x = b.x
	}
	g.load(x, dst)
	all := valueMask(t.bits)
	mask, xor := all, value{}
	for _, b := range slices.Backward(chain) {
		var m, x value
		switch b.op {
		case "&":
			m = b.y
		case "|":
			m, x = b.y.not().and(all), b.y
		case "^":
			m, x = all, b.y
		default:
			fail(b.pos, "unknown operation %q", b.op)
		}
		xor = x.xor(xor.and(m))
		mask = mask.and(m)
	}
	n := t.bytes()
	g.emitOwn(&expr.Bitwise{
		Source: dst.number(), Dest: dst.number(), Len: n,
		Mask: mask.bytes(n, t.order), Xor: xor.bytes(n, t.order),
	})
}

func (g *generator) shift(t *binaryTerm, dst register) {
	g.load(t.x, dst)
	op := expr.BitwiseLshift
	if t.op == ">>" {
		op = expr.BitwiseRshift
	}
	g.emitOwn(&expr.Bitwise{Source: dst.number(), Dest: dst.number(), Len: t.bytes(), Op: op, Shift: uint32(t.y.lo)})
}

// Single bytes are not swapped: nft before 1.1.2 swaps them in twos, which newer kernels (6.12.117,
// 7.3) refuse with EOPNOTSUPP.
func (g *generator) swap(t *swapTerm, dst register) {
	g.load(t.x, dst)
	if t.bits <= 8 {
		return
	}
	size := uint32(2)
	switch {
	case t.bits%64 == 0:
		size = 8
	case t.bits%32 == 0:
		size = 4
	}
	op := google.ByteorderHton
	if t.order == datatype.HostEndian {
		op = google.ByteorderNtoh
	}
	g.emit(&google.Byteorder{SourceRegister: dst.number(), DestRegister: dst.number(), Op: op, Len: t.bits / 8, Size: size})
}

// Key and data share registers.
func (g *generator) lookup(t *lookupTerm, dst register) {
	if need := max(t.key.info().slots(), t.slots()); uint32(dst)+need > expr.Slots {
		fail(t.pos, "map takes more than the kernel's %d bytes of registers", 4*expr.Slots)
	}
	g.loadKey(t.key, dst)
	g.emit(&google.Lookup{SourceRegister: dst.number(), DestRegister: dst.number(), IsDestRegSet: true, SetName: t.table.set.Name, SetID: t.table.id})
}

// loadKey reserves twice the slots of a concatenation's parts, as nft does.
func (g *generator) loadKey(key term, dst register) {
	space := uint32(0)
	if c, ok := key.(*concatTerm); ok {
		space = c.slots()
	}
	g.regs.used += space
	g.load(key, dst)
	g.regs.used -= space
}

func (s *matchStmt) generate(g *generator) {
	reg, left := g.regs.takeFor(s.left), s.left.info()
	prefix, ok := s.right.(*prefixTerm)
	short := ok && prefix.len%8 == 0 && prefix.len > 0 && (left.order == datatype.BigEndian || prefix.isString())
	if short {
		// A prefix of whole bytes is compared by these bytes only.
		switch s.left.(type) {
		case *payloadTerm, *exthdrTerm, *binaryTerm:
			// nft shortens the operation, not its load.
			left.bits = prefix.len
		}
	}
	g.load(s.left, reg)
	compare := func(op google.CmpOp, data []byte) {
		g.emit(&google.Cmp{Op: op, Register: reg.number(), Data: data})
	}
	mask := func(n uint32, mask, zero []byte) {
		g.emitOwn(&expr.Bitwise{Source: reg.number(), Dest: reg.number(), Len: n, Mask: mask, Xor: zero})
	}
	n := s.right.info().bytes()
	switch right := s.right.(type) {
	case *setTerm:
		g.emit(&google.Lookup{SourceRegister: reg.number(), SetName: right.set.Name, SetID: right.id, Invert: s.op == "!="})
	case *rangeTerm:
		from, to := right.from.bytes(n, right.order), right.to.bytes(n, right.order)
		if s.op == "!=" {
			g.emit(&google.Range{Op: google.CmpOpNeq, Register: reg.number(), FromData: from, ToData: to})
			return
		}
		compare(google.CmpOpGte, from)
		compare(google.CmpOpLte, to)
	case *prefixTerm:
		data := right.v.bytes(n, left.order)
		if short {
			data = data[:right.len/8]
		} else if rest := right.width % 8; rest != 0 {
			// If a field ends within a byte, nft moves the rest of the mask from above the whole
			// bytes into them.
			n = right.width / 8
			mask(n, prefixMask(rest, min(right.len, rest)).bytes(n, left.order), make([]byte, n))
		} else {
			mask(n, prefixMask(right.width, right.len).bytes(n, left.order), make([]byte, n))
		}
		compare(cmpOps[s.op], data)
	case *constTerm:
		data := right.v.bytes(n, right.order)
		if s.op == "any" || s.op == "none" {
			zero := make([]byte, n)
			mask(left.bytes(), data, zero)
			data = zero
		}
		compare(cmpOps[s.op], data)
	default:
		fail(s.right.info().pos, "%T cannot be compared with", s.right)
	}
}

var cmpOps = map[string]google.CmpOp{
	"==": google.CmpOpEq, "!=": google.CmpOpNeq, "<": google.CmpOpLt, "<=": google.CmpOpLte, ">": google.CmpOpGt, ">=": google.CmpOpGte,
	"any": google.CmpOpNeq, "none": google.CmpOpEq,
}

func (s *vmapStmt) generate(g *generator) {
	reg := g.regs.takeFor(s.key)
	g.loadKey(s.key, reg)
	g.emit(&google.Lookup{SourceRegister: reg.number(), DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: s.table.set.Name, SetID: s.table.id})
}

type verdictStmt struct{ set.Verdict }

func (s *verdictStmt) generate(g *generator) {
	g.emit(&google.Verdict{Kind: google.VerdictKind(s.Code), Chain: s.Chain})
}
