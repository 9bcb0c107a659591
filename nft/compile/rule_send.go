package compile

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

var wantDevice = want{typ: datatype.IfIndex, width: 32, order: datatype.HostEndian}

func (r *ruleCompiler) dup(s *syntax.Dup) {
	var addr, device term
	switch r.ctx.family {
	case nft.FamilyIP, nft.FamilyIP6:
		addr = r.target(s.To, wantAddr(uint32(r.ctx.family)))
		if s.Device != nil {
			device = r.target(s.Device, wantDevice)
		}
	case nft.FamilyNetdev:
		if s.Device != nil {
			fail(s.Device.Position(), "dup: in tables of family netdev the device is all there is: write dup to DEVICE")
		}
		device = r.target(s.To, wantDevice)
	default:
		fail(s.Pos, "dup is possible in tables of family ip, ip6 and netdev only")
	}
	r.add(&valueStmt{addr, device, func(addr, device uint32) expr.Expr { return &expr.Dup{Addr: addr, Device: device} }})
}

func wantAddr(family uint32) want {
	if family == unix.NFPROTO_IPV6 {
		return wantIP6
	}
	return wantIP
}

// target evaluates x, which must be one value, not a range.
func (r *ruleCompiler) target(x syntax.Expr, w want) term {
	t := r.argument(x, w)
	checkOne(x, t)
	return t
}

func checkOne(x syntax.Expr, t term) {
	if isConstant(t) && !isSingle(t) {
		fail(x.Position(), "%s is more than one value", describe(x))
	}
}

// loadOptional loads t into a new register and returns its number, or 0 if t is nil.
func (g *generator) loadOptional(t term) uint32 {
	if t == nil {
		return 0
	}
	return g.loadNew(t).number()
}

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

func familyNumber(name string) uint32 {
	switch name {
	case "ip":
		return unix.NFPROTO_IPV4
	case "ip6":
		return unix.NFPROTO_IPV6
	default:
		return 0
	}
}

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
