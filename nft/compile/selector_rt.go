package compile

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// rtTerm loads what the packet's route says.
type rtTerm struct {
	termInfo
	key *selector.HostKey
}

// rt evaluates a routing selector. Where the rule has matched the network
// protocol before, that says which next hop is meant.
func (r *ruleCompiler) rt(x *syntax.Rt) term {
	r.routed("rt", x.Pos)
	known := *x
	if x.Key == "nexthop" && x.Family != "ip6" {
		switch r.ctx.at(selector.LayerNetwork) {
		case &selector.HeaderIP:
			known.Family = "ip"
		case &selector.HeaderIP6:
			known.Family = "ip6"
		}
	}
	if x.Key == "nexthop" && known.Family == "ip6" && r.ctx.family == nft.FamilyIP {
		return fail(x.Pos, "rt ip6 nexthop cannot match in the ip family")
	}
	key := must(selector.RtByName(&known))
	return &rtTerm{hostInfo(key, x.Pos), key}
}

// load is loader's.
func (t *rtTerm) load(g *generator, dst register) {
	g.emit(&google.Rt{Key: google.RtKey(t.key.Key), Register: dst.number()})
}
