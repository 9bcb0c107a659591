package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// tproxy evaluates a tproxy statement.
func (r *ruleCompiler) tproxy(s *syntax.TProxy) {
	family := familyNumber(s.Family)
	switch r.ctx.family {
	case nft.FamilyIP, nft.FamilyIP6:
		if family == 0 {
			family = uint32(r.ctx.family)
		}
	case nft.FamilyInet:
	default:
		fail(s.Pos, "tproxy is possible in tables of family ip, ip6 and inet only")
	}
	if r.ctx.at(selector.LayerTransport) == nil {
		fail(s.Pos, "tproxy has a meaning only after a match of the transport protocol: write meta l4proto { tcp, udp } or so before it")
	}
	if network := r.ctx.at(selector.LayerNetwork); !carries(network, family) {
		fail(s.Pos, "conflicting protocols: the rule matches %s: write tproxy %s to", network.Name, network.Name)
	}
	var addr, port term
	if s.Addr != nil {
		if family == 0 {
			fail(s.Pos, "tproxy: ip or ip6 must be given with an address in tables of family inet: write tproxy ip to or tproxy ip6 to")
		}
		addr = r.target(s.Addr, wantAddr(family))
	}
	if s.Port != nil {
		port = r.target(s.Port, wantPort)
	}
	r.add(&valueStmt{addr, port, func(addr, port uint32) expr.Expr {
		return &expr.TProxy{Family: family, Addr: addr, Port: port}
	}})
}
