package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// fwdStmt sends a packet out of a device, to a neighbour if addr is not nil.
type fwdStmt struct {
	family       uint32
	addr, device term
}

// fwd evaluates a fwd statement.
func (r *ruleCompiler) fwd(s *syntax.Fwd) error {
	if r.ctx.family != nft.FamilyNetdev {
		return syntax.ErrorAt(s.Pos, "fwd is possible in tables of family netdev only")
	}
	out := &fwdStmt{}
	var err error
	if out.device, err = r.target(s.Device, wantDevice); err != nil {
		return err
	}
	if s.Addr != nil {
		out.family = familyNumber(s.Family)
		if out.addr, err = r.target(s.Addr, wantAddr(out.family)); err != nil {
			return err
		}
	}
	r.add(out)
	return nil
}

// familyNumber returns the number of ip and ip6, 0 for no family.
func familyNumber(name string) uint32 {
	switch name {
	case "ip":
		return selector.NFProtoIPv4
	case "ip6":
		return selector.NFProtoIPv6
	default:
		return 0
	}
}

// generate is statement's.
func (s *fwdStmt) generate(g *generator) error {
	defer g.regs.reset()
	e := expr.Fwd{Family: s.family}
	var err error
	if e.Device, err = g.loadTarget(s.device); err != nil {
		return err
	}
	if e.Addr, err = g.loadTarget(s.addr); err != nil {
		return err
	}
	g.emitOwn(&e)
	return nil
}
