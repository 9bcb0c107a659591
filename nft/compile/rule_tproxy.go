package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// tproxyStmt hands a packet over to a local socket; addr and port are nil when
// not given.
type tproxyStmt struct {
	family     uint32
	addr, port term
}

// tproxy evaluates a tproxy statement.
func (r *ruleCompiler) tproxy(s *syntax.TProxy) {
	out := &tproxyStmt{family: familyNumber(s.Family)}
	switch r.ctx.family {
	case nft.FamilyIP, nft.FamilyIP6:
		if out.family == 0 {
			out.family = uint32(r.ctx.family)
		}
	case nft.FamilyInet:
	default:
		fail(s.Pos, "tproxy is possible in tables of family ip, ip6 and inet only")
	}
	if r.ctx.at(selector.LayerTransport) == nil {
		fail(s.Pos, "tproxy has a meaning only after a match of the transport protocol: write meta l4proto { tcp, udp } or so before it")
	}
	network := r.ctx.at(selector.LayerNetwork)
	if network == &selector.HeaderIP && out.family != selector.NFProtoIPv4 || network == &selector.HeaderIP6 && out.family != selector.NFProtoIPv6 {
		fail(s.Pos, "conflicting protocols: the rule matches %s: write tproxy %s to", network.Name, network.Name)
	}
	if s.Addr != nil {
		if out.family == 0 {
			fail(s.Pos, "tproxy: ip or ip6 must be given with an address in tables of family inet: write tproxy ip to or tproxy ip6 to")
		}
		out.addr = r.target(s.Addr, wantAddr(out.family))
	}
	if s.Port != nil {
		out.port = r.target(s.Port, wantPort)
	}
	r.add(out)
}

// generate is statement's.
func (s *tproxyStmt) generate(g *generator) {
	e := expr.TProxy{Family: s.family}
	e.Addr = g.loadTarget(s.addr)
	e.Port = g.loadTarget(s.port)
	g.emitOwn(&e)
}
