package compile

import (
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// ipsecTerm loads from a state of the packet's IPsec transformation.
type ipsecTerm struct {
	termInfo
	key   *selector.HostKey
	dir   uint8
	spnum uint32
}

// ipsec evaluates an ipsec selector.
func (r *ruleCompiler) ipsec(x *syntax.IPsec) term {
	key := selector.IPsecByName(x.L3, x.Key)
	if key == nil {
		return fail(x.Pos, "unknown key %q of ipsec: want spi, reqid, or ip or ip6 with saddr or daddr", x.Key)
	}
	r.routed("ipsec", x.Pos)
	if x.Spnum > maxSpnum {
		return fail(x.Pos, "ipsec: spnum %d: the kernel keeps states 0 to %d", x.Spnum, maxSpnum)
	}
	return &ipsecTerm{hostInfo(key, x.Pos), key, selector.XfrmDirection(x.Dir), x.Spnum}
}

// maxSpnum is the last state that a packet can have (XFRM_MAX_DEPTH).
const maxSpnum = 5

// load is loader's.
func (t *ipsecTerm) load(g *generator, dst register) {
	g.emitOwn(&expr.Xfrm{Key: t.key.Key, Dir: t.dir, Spnum: t.spnum, Register: dst.number()})
}
