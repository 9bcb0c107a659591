package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// dupStmt sends a copy of a packet elsewhere; addr and device are nil when not
// given.
type dupStmt struct{ addr, device term }

// wantDevice is the type of the device of dup and fwd.
var wantDevice = want{typ: datatype.IfIndex, width: 32, order: datatype.HostEndian}

// dup evaluates a dup statement.
func (r *ruleCompiler) dup(s *syntax.Dup) {
	out := &dupStmt{}
	switch r.ctx.family {
	case nft.FamilyIP, nft.FamilyIP6:
		out.addr = r.target(s.To, wantAddr(uint32(r.ctx.family)))
		if s.Device != nil {
			out.device = r.target(s.Device, wantDevice)
		}
	case nft.FamilyNetdev:
		if s.Device != nil {
			fail(s.Device.Position(), "dup: in tables of family netdev the device is all there is: write dup to DEVICE")
		}
		out.device = r.target(s.To, wantDevice)
	default:
		fail(s.Pos, "dup is possible in tables of family ip, ip6 and netdev only")
	}
	r.add(out)
}

// wantAddr is the type of an address of a family.
func wantAddr(family uint32) want {
	if family == selector.NFProtoIPv6 {
		return wantIP6
	}
	return wantIP
}

// target evaluates where a packet is sent: one value, not a range.
func (r *ruleCompiler) target(x syntax.Expr, w want) term {
	t := r.argument(x, w)
	if isConstant(t) && !isSingle(t) {
		return fail(x.Position(), "%s is more than one value", describe(x))
	}
	return t
}

// loadTarget loads a value into a register of its own and returns the
// register's number; 0 where there is no value.
func (g *generator) loadTarget(t term) uint32 {
	if t == nil {
		return 0
	}
	return g.loadNew(t).number()
}

// generate is statement's.
func (s *dupStmt) generate(g *generator) {
	var e expr.Dup
	e.Addr = g.loadTarget(s.addr)
	e.Device = g.loadTarget(s.device)
	g.emitOwn(&e)
}
