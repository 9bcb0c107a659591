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
func (r *ruleCompiler) dup(s *syntax.Dup) error {
	out := &dupStmt{}
	var err error
	switch r.ctx.family {
	case nft.FamilyIP, nft.FamilyIP6:
		if out.addr, err = r.target(s.To, wantAddr(uint32(r.ctx.family))); err != nil {
			return err
		}
		if s.Device != nil {
			if out.device, err = r.target(s.Device, wantDevice); err != nil {
				return err
			}
		}
	case nft.FamilyNetdev:
		if s.Device != nil {
			return syntax.ErrorAt(s.Device.Position(), "dup: in tables of family netdev the device is all there is: write dup to DEVICE")
		}
		if out.device, err = r.target(s.To, wantDevice); err != nil {
			return err
		}
	default:
		return syntax.ErrorAt(s.Pos, "dup is possible in tables of family ip, ip6 and netdev only")
	}
	r.add(out)
	return nil
}

// wantAddr is the type of an address of a family.
func wantAddr(family uint32) want {
	if family == selector.NFProtoIPv6 {
		return wantIP6
	}
	return wantIP
}

// target evaluates where a packet is sent: one value, not a range.
func (r *ruleCompiler) target(x syntax.Expr, w want) (term, error) {
	t, err := r.argument(x, w)
	if err != nil {
		return nil, err
	}
	if isConstant(t) && !isSingle(t) {
		return nil, syntax.ErrorAt(x.Position(), "%s is more than one value", describe(x))
	}
	return t, nil
}

// loadTarget loads a value into a register of its own and returns the
// register's number; 0 where there is no value.
func (g *generator) loadTarget(t term) (uint32, error) {
	if t == nil {
		return 0, nil
	}
	reg, err := g.loadNew(t)
	return reg.number(), err
}

// generate is statement's.
func (s *dupStmt) generate(g *generator) error {
	defer g.regs.reset()
	var e expr.Dup
	var err error
	if e.Addr, err = g.loadTarget(s.addr); err != nil {
		return err
	}
	if e.Device, err = g.loadTarget(s.device); err != nil {
		return err
	}
	g.emitOwn(&e)
	return nil
}
