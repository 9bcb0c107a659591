package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// ipsecSelectors are the keys of the xfrm expression (enum nft_xfrm_keys).
var ipsecSelectors = [...]hostKey{
	{name: "daddr", l3: "ip", key: 1, dump: "daddr4", typ: datatype.IPv4Addr, bits: 32, order: datatype.BigEndian},
	{name: "daddr", l3: "ip6", key: 2, dump: "daddr6", typ: datatype.IPv6Addr, bits: 128, order: datatype.BigEndian},
	{name: "saddr", l3: "ip", key: 3, dump: "saddr4", typ: datatype.IPv4Addr, bits: 32, order: datatype.BigEndian},
	{name: "saddr", l3: "ip6", key: 4, dump: "saddr6", typ: datatype.IPv6Addr, bits: 128, order: datatype.BigEndian},
	{name: "reqid", key: 5, dump: "reqid", typ: datatype.Integer, bits: 32, order: datatype.HostEndian},
	{name: "spi", key: 6, dump: "spi", typ: datatype.Integer, bits: 32, order: datatype.BigEndian},
}

// ipsecByName returns a key, or nil.
func ipsecByName(l3, name string) *hostKey {
	for i := range ipsecSelectors {
		if k := &ipsecSelectors[i]; k.name == name && k.l3 == l3 {
			return k
		}
	}
	return nil
}

// ipsecTerm loads from a state of the packet's IPsec transformation.
type ipsecTerm struct {
	termInfo
	key   *hostKey
	dir   uint8
	spnum uint32
}

// ipsec evaluates an ipsec selector.
func (r *ruleCompiler) ipsec(x *syntax.IPsec) (term, error) {
	key := ipsecByName(x.L3, x.Key)
	if key == nil {
		return nil, errorAt(x.Pos, "unknown key %q of ipsec: want spi, reqid, or ip or ip6 with saddr or daddr", x.Key)
	}
	if err := r.routed("ipsec", x.Pos); err != nil {
		return nil, err
	}
	if x.Spnum > maxSpnum {
		return nil, errorAt(x.Pos, "ipsec: spnum %d: the kernel keeps states 0 to %d", x.Spnum, maxSpnum)
	}
	return &ipsecTerm{key.info(x.Pos), key, xfrmDirection(x.Dir), x.Spnum}, nil
}

// maxSpnum is the last state that a packet can have (XFRM_MAX_DEPTH).
const maxSpnum = 5

// xfrmDirection returns the number of a direction (XFRM_POLICY_IN,
// XFRM_POLICY_OUT).
func xfrmDirection(dir string) uint8 {
	if dir == "out" {
		return 1
	}
	return 0
}

// load is loader's.
func (t *ipsecTerm) load(g *generator, dst register) error {
	g.emitOwn(&Xfrm{Key: t.key.key, Dir: t.dir, Spnum: t.spnum, Register: dst.number()})
	return nil
}
