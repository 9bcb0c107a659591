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
func (r *ruleCompiler) fwd(s *syntax.Fwd) {
	if r.ctx.family != nft.FamilyNetdev {
		fail(s.Pos, "fwd is possible in tables of family netdev only")
	}
	out := &fwdStmt{}
	out.device = r.target(s.Device, wantDevice)
	if s.Addr != nil {
		out.family = familyNumber(s.Family)
		out.addr = r.target(s.Addr, wantAddr(out.family))
	}
	r.add(out)
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
func (s *fwdStmt) generate(g *generator) {
	e := expr.Fwd{Family: s.family}
	e.Device = g.loadTarget(s.device)
	e.Addr = g.loadTarget(s.addr)
	g.emitOwn(&e)
}
