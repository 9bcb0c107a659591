package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// fwd evaluates a fwd statement.
func (r *ruleCompiler) fwd(s *syntax.Fwd) {
	if r.ctx.family != nft.FamilyNetdev {
		fail(s.Pos, "fwd is possible in tables of family netdev only")
	}
	device, family, addr := r.target(s.Device, wantDevice), uint32(0), term(nil)
	if s.Addr != nil {
		family = familyNumber(s.Family)
		addr = r.target(s.Addr, wantAddr(family))
	}
	r.add(&valueStmt{device, addr, func(device, addr uint32) expr.Expr {
		return &expr.Fwd{Family: family, Device: device, Addr: addr}
	}})
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
