package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// host evaluates a selector that asks the host about a packet.
func (r *ruleCompiler) host(x syntax.Expr) term {
	switch x := x.(type) {
	case *syntax.Rt:
		return r.rt(x)
	case *syntax.Socket:
		return r.socket(x)
	case *syntax.OSF:
		return r.osf(x)
	case *syntax.IPsec:
		return r.ipsec(x)
	case *syntax.Hash:
		return r.hash(x)
	default:
		return fail(x.Position(), "%s is not a selector", describe(x))
	}
}

// routed refuses the families whose packets the kernel knows no route or
// socket of.
func (r *ruleCompiler) routed(what string, pos syntax.Pos) {
	switch r.ctx.family {
	case nft.FamilyIP, nft.FamilyIP6, nft.FamilyInet:
		return
	default:
		fail(pos, "%s is possible in the families ip, ip6 and inet only", what)
	}
}

// hostInfo is the termInfo of a term with the key.
func hostInfo(k *selector.HostKey, pos syntax.Pos) termInfo {
	return termInfo{pos: pos, typ: k.Type, bits: k.Bits, width: k.Bits, order: k.Order}
}
