package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// rtSelectors are the keys of the rt expression (enum nft_rt_keys).
var rtSelectors = [...]hostKey{
	{name: "classid", key: 0, dump: "classid", typ: datatype.Realm, bits: 32, order: datatype.HostEndian},
	{name: "nexthop", l3: "ip", key: 1, dump: "nexthop4", typ: datatype.IPv4Addr, bits: 32, order: datatype.BigEndian},
	{name: "nexthop", l3: "ip6", key: 2, dump: "nexthop6", typ: datatype.IPv6Addr, bits: 128, order: datatype.BigEndian},
	{name: "mtu", key: 3, dump: "tcpmss", typ: datatype.Integer, bits: 16, order: datatype.HostEndian},
	{name: "ipsec", key: 4, dump: "ipsec", typ: datatype.Boolean, bits: 8, order: datatype.HostEndian},
}

// rtByName returns the key of a selector that says its family where it must.
func rtByName(x *syntax.Rt) (*hostKey, *Error) {
	found := false
	for i := range rtSelectors {
		k := &rtSelectors[i]
		found = found || k.name == x.Key
		if k.name == x.Key && (k.l3 == "" || k.l3 == x.Family) {
			return k, nil
		}
	}
	if found {
		return nil, errorAt(x.KeyPos, "rt %s does not tell the protocol: write rt ip %s or rt ip6 %s", x.Key, x.Key, x.Key)
	}
	return nil, errorAt(x.KeyPos, "unknown key %q of rt: want classid, nexthop, mtu or ipsec", x.Key)
}

// rtTerm loads what the packet's route says.
type rtTerm struct {
	termInfo
	key *hostKey
}

// rt evaluates a routing selector. Where the rule has matched the network
// protocol before, that says which next hop is meant.
func (r *ruleCompiler) rt(x *syntax.Rt) (term, error) {
	if err := r.routed("rt", x.Pos); err != nil {
		return nil, err
	}
	known := *x
	if x.Key == "nexthop" && x.Family != "ip6" {
		switch r.ctx.at(layerNetwork) {
		case &headerIP:
			known.Family = "ip"
		case &headerIP6:
			known.Family = "ip6"
		}
	}
	if x.Key == "nexthop" && known.Family == "ip6" && r.ctx.family == nft.FamilyIP {
		return nil, errorAt(x.Pos, "rt ip6 nexthop cannot match in the ip family")
	}
	key, err := rtByName(&known)
	if err != nil {
		return nil, err
	}
	return &rtTerm{key.info(x.Pos), key}, nil
}

// load is loader's.
func (t *rtTerm) load(g *generator, dst register) error {
	g.emitOwn(&Rt{Key: t.key.key, Register: dst.number()})
	return nil
}
